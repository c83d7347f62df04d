package workload_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/command"
	"plimsoll/scenario"
)

// judge is an engine that only validates.
type judge struct {
	workload.Engine
	validate func(workload.Spec) error
}

func (judge) Describe() workload.Description      { return workload.Description{Name: "judge"} }
func (j judge) Validate(spec workload.Spec) error { return j.validate(spec) }

// Reader gives what Validate says, with its places where it has some, of the file alone and of the file with its disks.
func TestReader(t *testing.T) {
	placed := &workload.ConfigError{File: "a.cfg", Objections: []scenario.Objection{
		{Line: 2, Col: 3, What: "first"}, {Setting: true, What: "second", Code: "bounds"}, {What: "third"}}}
	g := workload.Reader(judge{validate: func(s workload.Spec) error {
		switch {
		case string(s.Config) == "bad":
			return placed
		case string(s.Config) == "plain":
			return errors.New("plain words")
		case len(s.Disks) == 2 && s.Disks[1].Device == "/dev/sdc" && s.Disks[1].Bytes == 7:
			return errors.New("unfit for " + s.Name)
		}
		return nil
	}})
	_, got := g.ReadConfig("a.cfg", []byte("bad"), nil)
	want := []scenario.Objection{{Code: "judge-file", Line: 2, Col: 3, What: "first"},
		{Code: "bounds", Setting: true, What: "second"}, {Code: "judge-file", What: "third"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := "a.cfg:2:3: first\njob_options: second\na.cfg: third"; placed.Error() != text {
		t.Errorf("%q, want %q", placed, text)
	}
	if placed.Objections[0].Code != "" {
		t.Error("the engine's own objections were changed")
	}
	if _, got = g.ReadConfig("a.cfg", []byte("plain"), nil); !cmp.Equal(got,
		[]scenario.Objection{{Code: "judge-file", What: "plain words"}}) {
		t.Errorf("%+v", got)
	}
	c, got := g.ReadConfig("a.cfg", []byte("good"), nil)
	if c == nil || got != nil {
		t.Fatalf("%v, %+v", c, got)
	}
	for _, use := range []struct {
		of   scenario.Use
		want []scenario.Objection
	}{
		{scenario.Use{Workload: "W", DiskBytes: []int64{1, 7}}, []scenario.Objection{{Code: "judge-file",
			What: "unfit for W"}}},
		{scenario.Use{Workload: "W", DiskBytes: []int64{1, 7}, Unsure: true}, nil},
		{scenario.Use{Workload: "W", DiskBytes: []int64{7, 1}}, nil},
		{scenario.Use{Workload: "W", DiskBytes: make([]int64, 26)}, nil},
	} {
		if got := c.Fit(use.of); !cmp.Equal(use.want, got) {
			t.Errorf("%+v: %+v, want %+v", use.of, got, use.want)
		}
	}
	if _, own := workload.Reader(command.Engine{}).(command.Engine); !own {
		t.Error("an engine that reads configs itself is not asked")
	}
}
