package nutanix

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

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
