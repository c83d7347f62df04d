package nutanix

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/testkit/prismtest"
)

// Both forms of what a poll became are the same text, also where it is of several pieces.
func TestPlainIsWhatIsPacked(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 200, DisksPerVM: 2, Hostile: true})
	x, _ := made(t, config(t, s, nil))
	x.PollOnce(t.Context())
	most := 0
	for kind, b := range x.sources[0].blocks {
		var plain bytes.Buffer
		if err := write(&plain, nil, []block{b}, false); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(b.packed))
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(want, plain.Bytes()) || len(want) == 0 {
			t.Errorf("%s: %v, %d bytes of %d", kind, err, plain.Len(), len(want))
		}
		most = max(most, len(b.plain))
	}
	if most < 2 {
		t.Error("no kind was of several pieces")
	}
}

// BenchmarkScrapeOverHTTP is the page of a large cluster over loopback, to readers that throw it away.
func BenchmarkScrapeOverHTTP(b *testing.B) {
	x := large(b, 5000)
	s := httptest.NewServer(x.Handler())
	defer s.Close()
	for _, packed := range []bool{true, false} {
		name := map[bool]string{true: "packed", false: "plain"}[packed]
		b.Run(name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+"/metrics", nil)
				if err != nil {
					b.Fatal(err)
				}
				if packed {
					r.Header.Set("Accept-Encoding", "gzip")
				}
				answer, err := client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, answer.Body)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(n)
				answer.Body.Close()
			}
		})
	}
}
