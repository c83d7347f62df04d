package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func emptySite(heap uint64) *Site {
	return New(Options{Folders: func() ([]string, error) { return nil, nil }, Now: time.Now, Heap: heap})
}

func ask(ctx context.Context, h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// While questions are answered and as many wait as can, the next are sent away with a time to come again, and pages are
// made all the same; who goes away waits no longer; and a stop ends all.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := emptySite(1 << 62)
	h := s.Handler()
	for range mostAtOnce {
		s.asking.turns <- struct{}{} // questions that take long
	}
	ctx, leave := context.WithCancel(t.Context())
	var g sync.WaitGroup
	codes := make([]int, mostWaiting)
	for i := range codes {
		g.Go(func() { codes[i] = ask(ctx, h, "/api/v1/query?query=1").Code })
	}
	until(t, "they do not wait", func() bool { return s.asking.waiting.Load() == mostWaiting })
	w := ask(t.Context(), h, "/api/v1/query?query=1")
	if w.Code != 503 || w.Header().Get("Retry-After") != "5" || !strings.Contains(w.Body.String(), errBusy.Error()) {
		t.Errorf("one more: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, path := range []string{"/", "/-/healthy", "/-/ready"} {
		if w := ask(t.Context(), h, path); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	leave()
	g.Wait()
	for i, code := range codes {
		if code != 499 {
			t.Errorf("question %d of who has gone: %d", i, code)
		}
	}
	late := ask(t.Context(), h, "/api/v1/query?query=1&timeout=1ms")
	if late.Code != 503 || !strings.Contains(late.Body.String(), errBusy.Error()) {
		t.Errorf("whose turn does not come in time: %d %s", late.Code, late.Body)
	}
	g.Go(func() { codes[0] = ask(t.Context(), h, "/api/v1/query?query=1").Code })
	until(t, "it does not wait", func() bool { return s.asking.waiting.Load() == 1 })
	s.Stopping()
	g.Wait()
	if codes[0] != 503 {
		t.Errorf("at a stop: %d", codes[0])
	}
	for range mostAtOnce {
		<-s.asking.turns
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A question during which memory runs short ends with words; what is small is answered before that is looked at.
func TestHeap(t *testing.T) {
	t.Parallel()
	s := emptySite(1)
	ctx, enough := s.frugal(t.Context())
	defer enough()
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	body, code := encode(failed(context.Cause(ctx)))
	if code != 503 || !strings.Contains(string(body), errTooMuch.Error()) {
		t.Errorf("%d %s", code, body)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Answers that slow readers have not taken are bounded in all.
func TestUnsent(t *testing.T) {
	t.Parallel()
	s := emptySite(1 << 62)
	if !s.hold(mostUnsent) {
		t.Fatal("nothing can be sent")
	}
	for _, path := range []string{"/api/v1/query?query=1", "/"} {
		if w := ask(t.Context(), s.Handler(), path); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	s.unsent.Add(-mostUnsent)
	for _, path := range []string{"/api/v1/query?query=1", "/"} {
		if w := ask(t.Context(), s.Handler(), path); w.Code != 200 || s.unsent.Load() != 0 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, s.unsent.Load())
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
