package nutanix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
)

// CGI answers one request as RFC 3875 has it: the head and the page of a target (?target=NAME; without one as Page), or
// the lines of Classic (classic, or ?format=ntnx_bash). What failed is on the page, with status 200, so that whoever
// reads it learns of it; a target that is not in the configuration is 404.
func CGI(w io.Writer, x *Exporter, query, method string, classic bool) error {
	head := func(status string, body []byte) error {
		const form = "Status: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
		_, err := fmt.Fprintf(w, form, status, Format, len(body))
		if err == nil && method != "HEAD" {
			_, err = w.Write(body)
		}
		return err
	}
	if method != "" && method != "GET" && method != "HEAD" {
		return head("405 Method Not Allowed", []byte("only GET and HEAD\n"))
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return head("400 Bad Request", []byte("the query is not of the form name=value&...\n"))
	}
	var page bytes.Buffer
	target := values.Get("target")
	if classic || values.Get("format") == "ntnx_bash" {
		err = x.Classic(&page, target)
	} else {
		err = x.Page(&page, target, false)
	}
	var unknown UnknownError
	if errors.As(err, &unknown) {
		return head("404 Not Found", []byte("no such target\n"))
	}
	if err != nil {
		return err
	}
	return head("200 OK", page.Bytes())
}
