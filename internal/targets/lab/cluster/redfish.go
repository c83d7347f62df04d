//go:build linux

package lab

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
)

// Where things are in Redfish.
const (
	rootPath = "/redfish/v1"
	systems  = rootPath + "/Systems"
	sessions = rootPath + "/SessionService/Sessions"
)

// resets are what a node's power button can do, by Redfish's names.
var resets = map[string]func(context.Context, target.PowerController) error{
	"On":               func(ctx context.Context, c target.PowerController) error { return c.PowerOn(ctx) },
	"ForceOff":         func(ctx context.Context, c target.PowerController) error { return c.PowerOff(ctx) },
	"GracefulShutdown": func(ctx context.Context, c target.PowerController) error { return c.Shutdown(ctx) },
	"ForceRestart":     Cycle,
	"PowerCycle":       Cycle,
}

// resetNames are the same in the order in which they are told.
var resetNames = []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"}

// redfish is the service of one node's controller.
type redfish struct {
	system   string // its only one
	power    target.PowerController
	password string

	mu     sync.Mutex
	tokens map[string]string // by session id
}

const mostSessions = 16 // the oldest clients of a BMC are thrown out, and log in again

type object map[string]any

func (r *redfish) handler() http.Handler {
	mux := http.NewServeMux()
	open := func(path string, answer func() object) {
		for _, p := range []string{path, path + "/{$}"} {
			mux.HandleFunc("GET "+p, func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, answer()) })
		}
	}
	open("/redfish", func() object { return object{"v1": rootPath + "/"} })
	open(rootPath, func() object {
		return object{"@odata.id": rootPath, "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService",
			"Name": "Root Service", "RedfishVersion": "1.15.0", "Product": "plimsoll lab",
			"Systems": link(systems), "SessionService": link(rootPath + "/SessionService"),
			"Links": object{"Sessions": link(sessions)}}
	})
	guarded := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
			if !r.loggedIn(q) {
				w.Header().Set("WWW-Authenticate", `Basic realm="bmc"`)
				refuse(w, http.StatusUnauthorized, "Base.1.8.NoValidSession", "log in first")
				return
			}
			h(w, q)
		})
	}
	guarded("GET "+rootPath+"/SessionService", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, object{"@odata.id": rootPath + "/SessionService", "Id": "SessionService",
			"@odata.type": "#SessionService.v1_1_8.SessionService", "Name": "Session Service", "ServiceEnabled": true,
			"Sessions": link(sessions)})
	})
	guarded("GET "+systems, func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, object{"@odata.id": systems, "Name": "Systems", "Members@odata.count": 1,
			"@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
			"Members":     []object{link(systems + "/" + r.system)}})
	})
	guarded("GET "+systems+"/"+r.system, r.describe)
	guarded("POST "+systems+"/"+r.system+"/Actions/ComputerSystem.Reset", r.reset)
	mux.HandleFunc("POST "+sessions, r.login)
	guarded("DELETE "+sessions+"/{id}", func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		delete(r.tokens, q.PathValue("id"))
		r.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func link(path string) object { return object{"@odata.id": path} }

func (r *redfish) describe(w http.ResponseWriter, q *http.Request) {
	state, err := r.power.State(q.Context())
	if err != nil {
		refuse(w, http.StatusInternalServerError, "Base.1.8.InternalError", err.Error())
		return
	}
	power := "Off"
	if state == target.On {
		power = "On"
	}
	path := systems + "/" + r.system
	say(w, http.StatusOK, object{"@odata.id": path, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
		"Id": r.system, "Name": r.system, "SystemType": "Physical", "PowerState": power,
		"Actions": object{"#ComputerSystem.Reset": object{"target": path + "/Actions/ComputerSystem.Reset",
			"ResetType@Redfish.AllowableValues": resetNames}}})
}

func (r *redfish) reset(w http.ResponseWriter, q *http.Request) {
	var asked struct{ ResetType string }
	if !read(w, q, &asked) {
		return
	}
	do := resets[asked.ResetType]
	if do == nil {
		refuse(w, http.StatusBadRequest, "Base.1.8.ActionParameterNotSupported",
			fmt.Sprintf("ResetType %q: must be one of %s", asked.ResetType, strings.Join(resetNames, ", ")))
		return
	}
	// A client that hangs up has still pressed the button.
	if err := do(context.WithoutCancel(q.Context()), r.power); err != nil {
		refuse(w, http.StatusInternalServerError, "Base.1.8.InternalError", err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *redfish) login(w http.ResponseWriter, q *http.Request) {
	var asked struct{ UserName, Password string }
	if !read(w, q, &asked) {
		return
	}
	if !r.right(asked.UserName, asked.Password) {
		refuse(w, http.StatusUnauthorized, "Base.1.8.ResourceAtUriUnauthorized", "wrong user or password")
		return
	}
	id, token := rand.Text(), rand.Text()
	r.mu.Lock()
	if len(r.tokens) >= mostSessions {
		clear(r.tokens)
	}
	r.tokens[id] = token
	r.mu.Unlock()
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", sessions+"/"+id)
	say(w, http.StatusCreated, object{"@odata.id": sessions + "/" + id, "@odata.type": "#Session.v1_3_0.Session",
		"Id": id, "Name": "User Session", "UserName": asked.UserName})
}

func (r *redfish) right(user, password string) bool {
	return subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte("admin\x00"+r.password)) == 1
}

func (r *redfish) loggedIn(q *http.Request) bool {
	if token := q.Header.Get("X-Auth-Token"); token != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, t := range r.tokens {
			if subtle.ConstantTimeCompare([]byte(t), []byte(token)) == 1 {
				return true
			}
		}
		return false
	}
	user, password, ok := q.BasicAuth()
	return ok && r.right(user, password)
}

func read(w http.ResponseWriter, q *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, 1<<16)).Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "Base.1.8.MalformedJSON", err.Error())
		return false
	}
	return true
}

func say(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("OData-Version", "4.0")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone
}

func refuse(w http.ResponseWriter, code int, id, message string) {
	say(w, code, object{"error": object{"code": id, "message": message}})
}

// serveRedfish serves the controllers of all nodes, each at its address, until one of them fails.
func (l *Lab) serveRedfish(ctx context.Context, errs io.Writer) error {
	password, err := l.password()
	if err != nil {
		return err
	}
	failed := make(chan error, l.record.Nodes)
	for _, n := range l.Nodes() {
		r := &redfish{system: n.Name(), power: n.Power(), password: password, tokens: map[string]string{}}
		s := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
			IdleTimeout: time.Minute, ErrorLog: log.New(errs, "", log.LstdFlags)}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", n.bmcAddress().String()+":443")
		if err != nil {
			return err
		}
		defer s.Close() //nolint:errcheck // its sessions end with it
		go func() { failed <- s.ServeTLS(listener, l.path("bmc", "cert.pem"), l.path("bmc", "key.pem")) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err())
	}
}
