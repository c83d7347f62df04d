package hammerdb

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/kit/pgwire"
)

// Orders is a server whose new orders are counted beside HammerDB's own figure: by what the districts have for the
// number of their next order, which each new order that is committed raises by one.
type Orders struct {
	Database string `json:"database"` // pg, maria or mysql
	Host     string `json:"host"`
	Port     int    `json:"port"`
	User     string `json:"user"`
	Schema   string `json:"schema"`
	Password string `json:"password"` // its name among the passwords
}

// Begins of the worker's own lines about new orders.
const (
	Counted   = "plimsoll: order numbers "            // their sum follows
	Uncounted = "plimsoll: new orders are not read: " // why follows
)

const (
	ordersQuery = "SELECT sum(d_next_o_id) FROM district"
	ordersLimit = 10 * time.Second // of a reading
	ordersOften = 10 * time.Second // between two, as HammerDB's own counter has it
)

// read is the sum of the districts' order numbers now.
func (o *Orders) read(ctx context.Context, passwords map[string]string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, ordersLimit)
	defer cancel()
	password, given := passwords[o.Password]
	if !given { // HammerDB's defaults
		password = map[string]string{"pg": "tpcc", "maria": "maria", "mysql": "mysql"}[o.Database]
	}
	if o.Database == "pg" {
		return o.readPostgres(ctx, password)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
	c.User, c.Passwd, c.DBName, c.TLSConfig = o.User, password, o.Schema, "preferred"
	c.Logger = log.New(io.Discard, "", 0) // what it logs comes as an error, too
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	var sum int64
	err = db.QueryRowContext(ctx, ordersQuery).Scan(&sum)
	return sum, err
}

func (o *Orders) readPostgres(ctx context.Context, password string) (int64, error) {
	address := url.URL{Scheme: "postgresql", User: url.User(o.User), Path: "/" + o.Schema,
		Host: net.JoinHostPort(o.Host, strconv.Itoa(o.Port))}
	server, err := pgwire.ParseServer(address.String())
	if err != nil {
		return 0, err
	}
	conn, err := server.WithPassword(password).Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, conn.Stop)()
	rows, err := conn.Do(ordersQuery)
	if err != nil {
		return 0, err
	}
	if !rows.Next() {
		return 0, fmt.Errorf("%s gives no row", ordersQuery)
	}
	return strconv.ParseInt(string(rows.Column(0)), 10, 64)
}

// count reads the order numbers at once, every little while, and when it is told to stop, and prints what they are.
// Its own failures are none of HammerDB's; the first one is said.
func (o *output) count(ctx context.Context, orders *Orders, passwords map[string]string, stop <-chan struct{}) {
	tick := time.NewTicker(ordersOften)
	defer tick.Stop()
	said := false
	for last := false; ; {
		n, err := orders.read(ctx, passwords)
		switch {
		case err == nil:
			o.print(Counted + strconv.FormatInt(n, 10))
		case !said:
			said = true
			o.print(o.mask(Uncounted + strings.Join(strings.Fields(err.Error()), " ")))
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-stop:
			last = true
		case <-tick.C:
		}
	}
}
