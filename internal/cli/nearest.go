package cli

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/kit/nearest"
)

var unknownFlag = regexp.MustCompile(`unknown flag: --([^\s=]+)`)

// nearestFlag is the flag the user may have meant, "" when none is near.
func nearestFlag(cmd *cobra.Command, err error) string {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return nearest.Of(m[1], names)
}

// plainNumber is what is wrong with a flag's number, in the words of who typed it and not in Go's.
func plainNumber(err error) error {
	bad, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	want := "want a whole number"
	switch {
	case errors.Is(bad, strconv.ErrRange):
		want = "it is out of range"
	case bad.Func == "ParseFloat":
		want = "want a number"
	case bad.Func == "ParseBool":
		want = "want true or false"
	}
	return errors.New(strings.Replace(err.Error(), bad.Error(), want, 1))
}
