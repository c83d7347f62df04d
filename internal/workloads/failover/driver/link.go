package failover

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// LinkPort is where the client machine takes the stream of a standby that is far away.
const LinkPort = 5433

// link carries the stream between a server and its standby as one of that length does: what goes in comes out so much
// later. It ends with the server, and what it carries then is lost.
type link struct {
	to       string // the server
	delay    time.Duration
	listener net.Listener
	end      func()
	using    sync.WaitGroup
}

// carry begins to take standbys at an address.
func carry(ctx context.Context, at, to string, delay time.Duration) (*link, error) {
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	l := &link{to: to, delay: delay, listener: listener, end: end}
	l.using.Go(func() {
		for {
			standby, err := listener.Accept()
			if err != nil {
				return
			}
			l.using.Go(func() { l.join(ctx, standby) })
		}
	})
	return l, nil
}

// close ends it, with its connections.
func (l *link) close() {
	l.end()
	_ = l.listener.Close() // nobody comes any more
	l.using.Wait()
}

// join carries one standby's stream until one of its ends is gone.
func (l *link) join(ctx context.Context, standby net.Conn) {
	defer standby.Close()
	d := net.Dialer{Timeout: 10 * time.Second}
	server, err := d.DialContext(ctx, "tcp", l.to)
	if err != nil {
		return
	}
	defer server.Close()
	ctx, over := context.WithCancel(ctx)
	defer over()
	context.AfterFunc(ctx, func() {
		standby.Close()
		server.Close()
	})
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, standby}, {standby, server}} {
		carried := make(chan parcel, mostCarried)
		both.Go(func() {
			defer close(carried)
			defer over()
			for {
				p := parcel{data: make([]byte, 16<<10)}
				n, err := way[0].Read(p.data)
				if err != nil {
					return
				}
				p.data, p.due = p.data[:n], time.Now().Add(l.delay)
				carried <- p
			}
		})
		both.Go(func() {
			for p := range carried {
				pause(ctx, time.Until(p.due))
				if ctx.Err() != nil {
					continue // lost
				}
				if _, err := way[1].Write(p.data); err != nil {
					over()
				}
			}
		})
	}
	both.Wait()
}

// parcel is a part of the stream on its way.
type parcel struct {
	data []byte
	due  time.Time
}

// mostCarried bounds what a link carries at once, in parcels.
const mostCarried = 4096

// lengthen has the standby follow over a link of the job's length.
func (w *work) lengthen(ctx context.Context, root context.Context) (*link, error) {
	port := strconv.Itoa(LinkPort)
	l, err := carry(root, net.JoinHostPort(w.job.Self, port), net.JoinHostPort(w.job.Servers[0], serverPort()),
		w.job.Distance)
	if err != nil {
		return nil, err
	}
	s, err := w.connect(ctx, 1)
	if err != nil {
		l.close()
		return nil, err
	}
	defer s.close()
	from, err := s.text(ctx, "select current_setting('primary_conninfo')")
	if err == nil {
		// Of what is there twice the last one counts.
		err = s.conn.Exec(ctx, fmt.Sprintf("alter system set primary_conninfo = '%s host=%s port=%s'",
			quoted(from), w.job.Self, port)).Close()
	}
	if err == nil {
		err = s.conn.Exec(ctx, "select pg_reload_conf()").Close()
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("the standby's address: %w", err)
	}
	return l, nil
}
