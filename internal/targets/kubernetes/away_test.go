package kubernetes

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
)

// TestAway asks a server that does not answer for many things: all of them together take no longer than one may.
func TestAway(t *testing.T) {
	f, file := faked(t, nil, "")
	p := reached(t, file, nil).(*place)
	_, a, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	a.patience = 2 * time.Second
	begun := time.Now()
	for range 10 {
		if _, err := a.get(context.Background(), nodes, "n1"); err == nil {
			t.Fatal("it answers")
		}
	}
	if took := time.Since(begun); took < time.Second || took > 2*a.patience {
		t.Errorf("ten calls were given up after %v", took)
	}
	var back *httptest.Server
	if l, err := net.Listen("tcp", f.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	} else {
		back = &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	}
	back.StartTLS()
	if _, err := a.list(context.Background(), nodes, ""); err != nil {
		t.Error(err)
	}
	back.Close()
	begun = time.Now()
	if _, err := a.get(context.Background(), nodes, "n1"); err == nil || time.Since(begun) < time.Second {
		t.Errorf("after it was back it was given up in %v: %v", time.Since(begun), err)
	}
}

// TestClones claims clones of machines where the storage may copy volumes, and says elsewhere why not.
func TestClones(t *testing.T) {
	for _, test := range []struct{ name, more, from, to, can, cannot string }{
		{name: "a CSI driver", can: "the storage's copies of volumes"},
		{name: "no CSI driver", from: `"provisioner": "disks.example"`, to: `"provisioner": "paths.example"`,
			cannot: `storage class "fast": its provisioner paths.example is no CSI driver of this cluster`},
		{name: "snapshots", more: "clones: snapshots\n", can: "volumes made of the storage's snapshots"},
		{name: "no snapshots", more: "clones: snapshots\n", from: `"driver": "disks.example"`,
			to: `"driver": "other.example"`, cannot: "clones: snapshots: the cluster has no class of snapshots of disks.example"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, file := faked(t, nil, test.more)
			f.objects = strings.Replace(fakeObjects, test.from, test.to, 1)
			facts, err := reached(t, file, nil).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			room := ""
			for _, is := range facts.Environment {
				if is.Name == "room in storage class" {
					room = is.Value
				}
			}
			if room != "2 GiB on b z, 5 GiB on a" {
				t.Errorf("room: %q", room)
			}
			can, why := facts.Capabilities[target.VMClones], facts.Missing[target.VMClones]
			if !strings.HasPrefix(can, test.can) || !strings.HasPrefix(why, test.cannot) || (can == "") == (why == "") {
				t.Errorf("can %q, cannot %q", can, why)
			}
		})
	}
}
