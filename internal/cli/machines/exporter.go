package machines

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/visible"
)

// exporterFlags say how to serve an exporter.
type exporterFlags struct {
	listen, token string
	options       []string
	once, open    bool
}

func ExporterCommand(con *console.Console, registry drivers.Registry) *cobra.Command {
	verbs := []*cobra.Command{{
		Use: "list", Short: "List the exporters there are, with their options", Args: console.Args(0, 0, "argument"),
		Example: "  plimsoll exporter list",
		RunE:    func(*cobra.Command, []string) error { return listExporters(con, registry) },
	}}
	for _, k := range registry.Exporters {
		var f exporterFlags
		c := &cobra.Command{
			Use:   k.Name,
			Short: "Serve " + k.Summary,
			Args:  console.Args(0, 0, "argument"),
			Long: "Serve " + k.Summary + `.

It answers /metrics in Prometheus' text format, /-/healthy and /-/ready, until it is interrupted. Only this machine can
reach it, unless --listen says otherwise; then readers must send a token (Authorization: Bearer TOKEN), and --token
says where that is. The token is sent as it is: encrypt where the network is not trusted.`,
			Example: fmt.Sprintf("  plimsoll exporter %s --once\n  plimsoll exporter %[1]s --listen 127.0.0.1:9100",
				k.Name),
			RunE: func(cmd *cobra.Command, _ []string) error { return export(con, console.Phase(cmd), k, f) },
		}
		c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:9100", "`address` to serve at, HOST:PORT")
		c.Flags().StringVar(&f.token, "token", "",
			"`where` the token is that readers must send: env:NAME, file:PATH, command:PROGRAM")
		c.Flags().StringArrayVar(&f.options, "opt", nil, "set an option of the exporter, `NAME=VALUE`; repeatable")
		c.Flags().BoolVar(&f.once, "once", false, "print one page and end")
		c.Flags().BoolVar(&f.open, "openmetrics", false, "with --once: print it in the OpenMetrics format")
		verbs = append(verbs, c)
	}
	verbs = append(verbs, exporterNutanixCommand(con))
	return console.Group("exporter", "Serve counters of machines and databases for Prometheus", verbs...)
}

func listExporters(con *console.Console, registry drivers.Registry) error {
	var all []console.Listed
	for _, k := range registry.Exporters {
		all = append(all, console.Listing(k.Name, k.Summary, k.Options))
	}
	all = append(all, console.Listing("nutanix", nutanixSummary, nil))
	return con.PrintListed(all)
}

// export makes one page, or serves until it is interrupted.
func export(con *console.Console, phase string, k exporter.Kind, f exporterFlags) error {
	options, err := console.Pairs("--opt", f.options)
	if err != nil {
		return err
	}
	c, err := k.Open(options)
	if err != nil {
		return exit.Usagef(`run "plimsoll exporter list" for the options there are`, "%w", err)
	}
	x, err := exporter.New(console.BuildVersion().Program, c)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	ctx, stop := con.Interruptible()
	defer stop()
	if f.once {
		return exportOnce(ctx, con, phase, x, f.open)
	}
	s := listen.Server{
		Address:   f.listen,
		Listening: func(address string) { visible.Fprintf(con.Err, "serving http://%s/metrics\n", address) },
	}
	if s.Token, err = TokenFrom(ctx, f.token); err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	if err := s.Check(); err != nil {
		return exit.Usagef("--token says where a token is, like env:NAME or file:PATH", "%s%w", phase, err)
	}
	if err := x.Serve(ctx, s); err != nil {
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	return nil
}

// TokenFrom reads a token from where a flag says it is; none when it says nothing.
func TokenFrom(ctx context.Context, where string) (secret.Secret, error) {
	if where == "" {
		return secret.Secret{}, nil
	}
	source, err := secret.ParseSource(where)
	if err != nil {
		return secret.Secret{}, fmt.Errorf("--token: %w", err)
	}
	token, err := source.Read(ctx)
	if err != nil {
		return secret.Secret{}, fmt.Errorf("--token: %w", err)
	}
	return token, nil
}

// exportOnce prints a page. One that a collector could give nothing for is printed all the same, and is a failure.
func exportOnce(ctx context.Context, con *console.Console, phase string, x *exporter.Exporter, open bool) error {
	format := exporter.Text
	if open {
		format = exporter.OpenMetrics
	}
	failed, err := x.Page(ctx, con.Out, format)
	switch {
	case err != nil:
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	case ctx.Err() != nil:
		return exit.Errorf(exit.Interrupted, "", "%s%w", phase, console.ErrInterrupted)
	case failed != nil:
		return exit.Errorf(exit.Failed, "the page says the same", "%s%w", phase, failed)
	}
	return nil
}
