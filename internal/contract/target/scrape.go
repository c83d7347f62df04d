package target

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// ScrapeSource is implemented by clusters of which something serves counters in Prometheus' text format: an exporter
// on a machine, reached in whatever way, or one in this process.
type ScrapeSource interface {
	// Endpoints lists what can be scraped now. It is asked every second or so, at little cost.
	Endpoints(context.Context) ([]Endpoint, error)
}

// Endpoint is one page of counters that can be had again and again.
type Endpoint struct {
	// Name tells the endpoints of a machine apart: a port, or a word.
	Name string
	// VM is the machine it belongs to; Machine, when VM is "", is one underneath, a node or whatever lies below nodes.
	VM, Machine string
	// Shared says of a machine underneath that VMs are no machines of their own there: its counters stand for theirs.
	Shared bool
	Get    Getter
}

// Getter gets a page and its content type, as HTTP has it. The reader is closed by who called. It obeys ctx, and so
// does what it returns. It is called by one goroutine at a time.
type Getter func(ctx context.Context) (page io.ReadCloser, contentType string, err error)

// VMAddressed is implemented by clusters whose VMs can be reached over the network from here, and claimed as
// VMExporters.
type VMAddressed interface {
	// VMAddress is the address of a VM, known since it was powered on: it is asked for every second. "" is not known.
	VMAddress(vm string) string
}

// FromURL gets pages with HTTP.
func FromURL(client *http.Client, url string) Getter {
	return func(ctx context.Context) (io.ReadCloser, string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, "", err
		}
		r.Header.Set("Accept",
			"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.9,*/*;q=0.1")
		answer, err := client.Do(r)
		if err != nil {
			return nil, "", err
		}
		if answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close() // the answer is no page
			return nil, "", fmt.Errorf("%s: it answered %q", url, answer.Status)
		}
		return answer.Body, answer.Header.Get("Content-Type"), nil
	}
}
