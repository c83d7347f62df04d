package fio

import (
	"os"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

func TestSuite(t *testing.T) {
	needs.Fio(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good: []byte("[global]\nioengine=psync\ntime_based\nbs=4k\n[both]\nfilename=/dev/sdb\nsize=4m\n" +
			"rw=randrw\nrate_iops=300\n"),
		Sections: []byte("[global]\nioengine=psync\ntime_based\nbs=4k\nfilename=/dev/sdb\nsize=4m\n[data]\n" +
			"rw=randrw\nrate_iops=200\nnumjobs=2\n[log]\nrw=write\nrate_iops=100\nstartdelay=500ms\n"),
		Faulty: []byte("[job]\nfilename=/etc/passwd\nsize=4m\ndirectory=/tmp\nioengine=exec\n"),
		Objections: []string{"/etc/passwd", "directory", "exec", "suite.cfg:2:10", "suite.cfg:4:11",
			"suite.cfg:5:10"},
		Refused:      []byte("[job]\nfilename=/dev/sdb\nsize=4m\niodepth=0\n"),
		RefusedWords: []string{"min value out of range", "code 1", "Suite Load"},
		Noise:        []byte("fio: pid=1, err=5/file:io_u.c:1, func=io_u error, error=Input/output error\n"),
	}.Run(t)
}
