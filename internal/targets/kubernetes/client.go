package kubernetes

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/unit"
)

// The kinds of objects that are worked with.
var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claims     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	classes    = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	drivers    = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	capacities = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	reviews    = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews"}
	shots    = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	shotSets = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1",
		Resource: "volumesnapshotclasses"}
)

// api is a cluster's API, in one namespace.
type api struct {
	config    *rest.Config
	client    *http.Client
	dynamic   dynamic.Interface
	host      string
	context   string
	namespace string
	// patience is for how long a server that is away, or has too much to do, is asked again; the latter for
	// busyLimit at least.
	patience time.Duration
	// gone is for how long objects that were deleted are waited for.
	gone time.Duration

	mu sync.Mutex
	// away is since when nothing was answered, until the last time that this was so: all calls share one patience.
	away, until time.Time
}

const mostKubeconfig = 4 << 20

// rate is how many calls of the API are made in a second at most, over more than a few.
const rate = 50

// callLimit bounds one call of the API; the server may be away for a while. One that is there and has too much to do is
// asked again for busyLimit, also before a run begins.
const (
	callLimit = 30 * time.Second
	awayLimit = 3 * time.Second
	busyLimit = 10 * time.Second
)

// quiet keeps the client from writing what it meets to standard error by itself: what matters comes back as errors.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// connect reads the kubeconfig and opens no connection. A credential plug-in runs only where the file allows it.
func (f *fleetFile) connect() (*api, error) {
	quiet()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.Context})
	files := rules.Precedence
	if f.Kubeconfig != "" {
		files = []string{f.Kubeconfig}
	}
	wrong := func(format string, args ...any) (*api, error) {
		return nil, fmt.Errorf("target kubernetes: kubeconfig: "+format, args...)
	}
	if err := readable(mostKubeconfig, files...); err != nil {
		return wrong("%w", err)
	}
	raw, err := loader.RawConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return wrong("%w: %s", err, giveConfig)
	} else if err != nil {
		return wrong("%w", err)
	}
	name := cmp.Or(f.Context, raw.CurrentContext)
	there := unit.List(sorted(raw.Contexts), mostNodes)
	if name == "" && len(raw.Contexts) > 1 {
		return wrong("it has %d contexts and none is current: give context: NAME in the fleet's file: there are %s",
			len(raw.Contexts), there)
	}
	c := raw.Contexts[name]
	if c == nil && name != "" && len(raw.Contexts) > 0 {
		return wrong("context %q does not exist: give another as context: in the fleet's file: there are %s", name, there)
	}
	if c != nil {
		cluster, who := raw.Clusters[c.Cluster], raw.AuthInfos[c.AuthInfo]
		if cluster == nil {
			return wrong("context %q: it has no cluster %q: %s", name, c.Cluster, giveConfig)
		} else if who == nil && c.AuthInfo != "" { // it would be asked as nobody, who may do nothing
			return wrong("context %q: it has no user %q: %s", name, c.AuthInfo, giveConfig)
		}
		named := []string{cluster.CertificateAuthority}
		if who != nil && who.Exec != nil && !f.Exec {
			return wrong("context %q logs in by the program %q: give exec: true in the fleet's file to let it run", name,
				who.Exec.Command)
		} else if who != nil {
			named = append(named, who.TokenFile, who.ClientCertificate, who.ClientKey)
		}
		if err := readable(mostFile, named...); err != nil {
			return wrong("context %q: %w", name, err)
		}
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return wrong("%s: it is empty, or there is none: %s", strings.Join(files, ", "), giveConfig)
	} else if err != nil {
		return wrong("context %q: %w", name, err)
	}
	config.QPS, config.Burst, config.Timeout = rate, 2*rate, 0
	config.UserAgent = "plimsoll"
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	host, _, e := rest.DefaultServerUrlFor(config)
	if err = errors.Join(err, e); err != nil {
		return wrong("context %q: %w: see its server, certificate-authority, client-certificate and client-key, or %s", name,
			err, giveConfig)
	}
	client.Transport = bounded{client.Transport}
	d, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("target kubernetes: %w", err)
	}
	return &api{config: config, client: client, dynamic: d, host: host.Redacted(), context: name,
		namespace: f.Namespace, gone: goneLimit}, nil
}

// giveConfig says what to do where a kubeconfig is not there, or not whole.
const giveConfig = "give kubeconfig: FILE in the fleet's file (kubectl config view --flatten --raw prints kubectl's own)"

// readable says which of the files is no regular one, or larger than most: the client library would wait for a named
// pipe, and read an endless device until no memory is left. What is not there, the library says.
func readable(most int64, files ...string) error {
	for _, name := range files {
		if name == "" {
			continue
		}
		if _, err := regular.Read(name, os.O_RDONLY, most); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// bounded ends calls when their time is over also where what is below does not: a credential program that hangs.
type bounded struct{ below http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	type answered struct {
		response *http.Response
		err      error
	}
	done := make(chan answered, 1)
	go func() {
		response, err := b.below.RoundTrip(r)
		done <- answered{response, err}
	}()
	select {
	case a := <-done:
		return a.response, a.err
	case <-r.Context().Done():
	}
	go func() {
		if a := <-done; a.err == nil {
			_ = a.response.Body.Close() // nobody reads it
		}
	}()
	return nil, context.Cause(r.Context())
}

// of is a kind of objects in the namespace, or of the cluster.
func (a *api) of(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	switch kind.Resource {
	case "nodes", "storageclasses", "csidrivers", "persistentvolumes", "selfsubjectaccessreviews",
		"volumesnapshotclasses":
		return a.dynamic.Resource(kind)
	}
	return a.dynamic.Resource(kind).Namespace(a.namespace)
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// again asks until the server has an answer: one that is away, or has too much to do, is asked again for as long as we
// are patient, since the first call that had none. What was asked for may have been done though no answer came.
func (a *api) again(ctx context.Context, do func(ctx context.Context) error) error {
	asked := time.Now()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		call, cancel := context.WithTimeout(ctx, a.limit())
		err := do(call)
		cancel()
		urlErr := (*url.Error)(nil)
		patience := time.Duration(0)
		switch {
		case isBusy(err):
			patience = max(a.patience, busyLimit)
		case errors.As(err, &urlErr) && !strings.Contains(err.Error(), "x509:"):
			patience = a.patience
		}
		if ctx.Err() != nil || a.awayFor(asked, patience)+wait >= patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// limit bounds one call: of a server that has been away for as long as we are patient not much is expected.
func (a *api) limit() time.Duration {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.patience > 0 && !a.away.IsZero() && now.Sub(a.away) > a.patience && now.Sub(a.until) <= a.patience {
		return awayLimit
	}
	return callLimit
}

// awayFor is how long the server has been away, or busy, after a call that began then: 0 where it has answered, for
// which there is no patience.
func (a *api) awayFor(asked time.Time, patience time.Duration) time.Duration {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case patience == 0:
		a.away = time.Time{}
		return 0
	case a.away.IsZero(), now.Sub(a.until) > patience: // long ago
		a.away = asked
	}
	a.until = now
	return now.Sub(a.away)
}

// isBusy says whether an error is the server's own: it may have an answer later.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}

// get gets an object; nil where there is none.
func (a *api) get(ctx context.Context, kind schema.GroupVersionResource, name string) (*unstructured.Unstructured,
	error) {
	var o *unstructured.Unstructured
	err := a.again(ctx, func(ctx context.Context) (err error) {
		o, err = a.of(kind).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, a.said(err)
}

// create makes an object, also where the server is away for a while.
func (a *api) create(ctx context.Context, kind schema.GroupVersionResource, o *unstructured.Unstructured,
	options metav1.CreateOptions) (made *unstructured.Unstructured, err error) {
	err = a.again(ctx, func(ctx context.Context) (err error) {
		made, err = a.of(kind).Create(ctx, o, options)
		return err
	})
	return made, err
}

// list lists objects that have a label.
func (a *api) list(ctx context.Context, kind schema.GroupVersionResource, selector string) ([]unstructured.Unstructured,
	error) {
	var all []unstructured.Unstructured
	for next := ""; ; {
		var page *unstructured.UnstructuredList
		err := a.again(ctx, func(ctx context.Context) (err error) {
			page, err = a.of(kind).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 500, Continue: next})
			return err
		})
		if err != nil {
			return nil, a.said(err)
		}
		all = append(all, page.Items...)
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// owned gets an object of a run; nil where there is none. One of that name that is not of the run is an error.
func (a *api) owned(ctx context.Context, kind schema.GroupVersionResource, name,
	run string) (*unstructured.Unstructured, error) {
	o, err := a.get(ctx, kind, name)
	if err != nil || o == nil {
		return nil, err
	}
	if other := o.GetLabels()[runLabel]; other != run {
		return nil, fmt.Errorf("%s %q: its label %s is %q: it is not of this run and stays as it is", kind.Resource,
			name, runLabel, other)
	}
	return o, nil
}

// remove deletes an object of a run, with what time its processes have to end: the very one whose label was looked at.
// One that is gone is fine.
func (a *api) remove(ctx context.Context, kind schema.GroupVersionResource, name, run string, grace *int64) error {
	o, err := a.owned(ctx, kind, name, run)
	if err != nil || o == nil {
		return err
	}
	return a.removeThis(ctx, kind, o, grace)
}

func (a *api) removeThis(ctx context.Context, kind schema.GroupVersionResource, o *unstructured.Unstructured,
	grace *int64) error {
	id := o.GetUID()
	err := a.again(ctx, func(ctx context.Context) error {
		return a.of(kind).Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: grace,
			Preconditions: &metav1.Preconditions{UID: &id}})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return a.said(err)
}

// remedies are what to do about what a cluster says, by words of it; NAMESPACE and NODE are filled in. What stays does
// not pass by itself.
var remedies = []struct {
	words, do string
	stays     bool
}{
	{words: "being terminated", do: "wait until it is gone and make it again, or give another as namespace:"},
	{words: "exceeded quota", do: "have the quota raised, or remove what fills it (plimsoll cleanup --target kubernetes " +
		"lists runs)"},
	{words: "must not set securityContext.privileged=true", do: "kubectl label --overwrite namespace NAMESPACE " +
		"pod-security.kubernetes.io/enforce=privileged"},
	{words: "violates PodSecurity", do: "kubectl label --overwrite namespace NAMESPACE " +
		"pod-security.kubernetes.io/enforce=baseline"},
	{words: `namespaces "`, do: "kubectl create namespace NAMESPACE"},
	{words: `" cannot `, do: "give it the Role that plimsoll targets role kubernetes --namespace NAMESPACE prints"},
	{"storageclass.storage.k8s.io", "name a class that there is (kubectl get storageclass)", true},
	{"no copy of ", noClones, true},
	{"code = InvalidArgument", "name a class that makes volumes of mode Block, and an access_mode that it takes, or give " +
		"volume_mode: Filesystem, which makes data disks files", true},
	{"does not support clon", noClones, true},
	{"CLONE_VOLUME", noClones, true},
	{"ErrImage", noImage, true},
	{"ImagePull", noImage, true},
	{"InvalidImageName", "give another image in images:", true},
	{"unschedulable", "kubectl uncordon NODE, or name other nodes in nodes:", true},
	// It may be one of a node that is not ready yet.
	{words: "untolerated taint", do: "take the taint from NODE, or name other nodes in nodes:"},
	{"Insufficient ", "have fewer or smaller machines on NODE, or leave requests: out", true},
	{words: "serializer for ", do: "something else than an API server answers: see the kubeconfig's server, and proxies"},
	{words: `"/bin/sh"`, do: "give an image with a shell in images:"},
}

const noClones = "give clones: snapshots in the fleet's file, where the storage makes volumes of snapshots, or name " +
	"another class"

const noImage = "push the image to where NODE gets it from, or load it there (ctr -n k8s.io images import), or give " +
	"another in images:"

// stays says whether what a cluster says does not pass by itself.
func stays(said string) bool {
	for _, r := range remedies {
		if strings.Contains(said, r.words) {
			return r.stays
		}
	}
	return false
}

// noSuchImage are words of registries and kubelets about an image that another try does not get either. Others, of a
// registry that is busy or a connection that broke, may pass.
var noSuchImage = regexp.MustCompile("(?i)not found|unknown|denied|unauthorized|authorization failed|forbidden|" +
	"no such host|connection refused|no match for platform|InvalidImageName|ErrImageNeverPull")

// hasNoImage says whether a pod waits for an image that does not come.
func hasNoImage(said string) bool {
	return strings.Contains(said, "Image") && noSuchImage.MatchString(said)
}

// remedy says what to do about what a cluster says of a node, after a colon; "" where neither is known.
func (a *api) remedy(said, node, orElse string) string {
	for _, r := range remedies {
		if strings.Contains(said, r.words) {
			orElse = r.do
			break
		}
	}
	if orElse == "" {
		return ""
	}
	return ": " + strings.NewReplacer("NAMESPACE", a.namespace, "NODE", node).Replace(orElse)
}

// said names the API in an error of its connection, with what to do.
func (a *api) said(err error) error {
	if err == nil {
		return nil
	}
	text := ""
	switch urlErr := (*url.Error)(nil); {
	case apierrors.IsUnauthorized(err):
		text = ": the token or certificate of the kubeconfig is not accepted, or has expired: log in anew (kubectl create " +
			"token plimsoll --namespace " + a.namespace + ")"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		text = ": the server's certificate is not signed by the authority in the kubeconfig: give the cluster's own as " +
			"certificate-authority"
	case errors.As(err, new(x509.HostnameError)):
		text = ": the kubeconfig's server has an address that is not in its certificate: give one that is, or " +
			"tls-server-name"
	case strings.Contains(err.Error(), "certificate has expired or is not yet valid"):
		text = ": renew the server's certificate, or set this machine's clock"
	case strings.Contains(err.Error(), "x509:"):
	case strings.Contains(err.Error(), "getting credentials: exec:"):
		line, _, _ := strings.Cut(err.Error(), "\n") // the library adds a manual
		return fmt.Errorf("%s: see that the program of context %q is installed and logs in", line, a.context)
	case errors.As(err, &urlErr), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server %s of context %q does not answer: %w: %w: see that it runs and is reached from "+
			"here", a.host, a.context, target.ErrNotAccessible, err)
	case isBusy(err):
		return fmt.Errorf("the API server %s is overloaded or has failed, also when it was asked again for %s: %w: see how "+
			"it is (kubectl get --raw '/readyz?verbose')", a.host, unit.Duration(max(a.patience, busyLimit)), err)
	default:
		text = a.remedy(err.Error(), "", "")
	}
	return fmt.Errorf("%w%s", err, text)
}

// execAt is the address of commands in a pod.
func (a *api) execAt(pod string, line string, in bool) (*url.URL, error) {
	base, _, err := rest.DefaultServerURL(a.config.Host, a.config.APIPath, schema.GroupVersion{Version: "v1"},
		a.config.TLSClientConfig.CAFile != "" || len(a.config.CAData) > 0)
	if err != nil {
		return nil, err
	}
	u := base.JoinPath("api", "v1", "namespaces", a.namespace, "pods", pod, "exec")
	q := url.Values{"container": {container}, "stdout": {"true"}, "stderr": {"true"}, "command": {"/bin/sh", "-c",
		line}}
	if in {
		q.Set("stdin", "true")
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// executor runs a command line in a pod: over WebSocket, and where the role or the server allows only SPDY, by that.
func (a *api) executor(pod, line string, in bool) (remotecommand.Executor, error) {
	u, err := a.execAt(pod, line, in)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(a.config)
	web, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(web, spdy, func(err error) bool {
		return err != nil && (strings.Contains(err.Error(), "unable to upgrade") || strings.Contains(err.Error(),
			"websocket: bad handshake"))
	})
}

// inside is a pod as a way for package remote.
type inside struct {
	api  *api
	pod  string
	life context.Context
	end  context.CancelFunc
}

// way leads into a pod.
func (a *api) way(pod string) remote.Dialer {
	return func(context.Context) (remote.Connection, error) {
		life, end := context.WithCancel(context.Background())
		return &inside{a, pod, life, end}, nil
	}
}

// Close implements io.Closer: it ends what goes on over it.
func (i *inside) Close() error { i.end(); return nil }

// mostSaid is kept of what a command prints.
const mostSaid = 64 << 10

// Command implements remote.Connection.
func (i *inside) Command(ctx context.Context, limit time.Duration, in io.Reader, line string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %v", target.ErrNotAccessible,
		limit))
	defer cancel()
	defer context.AfterFunc(i.life, cancel)()
	e, err := i.api.executor(i.pod, line, in != nil)
	if err != nil {
		return "", err
	}
	out, errs := remote.Tail{Most: mostSaid}, remote.Tail{Most: mostSaid}
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: &errs})
	switch said := strings.TrimSpace(errs.Text()); {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && said != "":
		err = fmt.Errorf("%s (%w)", said, err)
	}
	return out.Text(), i.passes(err)
}

// passes marks an error that is no exit code as one of the way, which may pass.
func (i *inside) passes(err error) error {
	if _, exited := errors.AsType[exec.CodeExitError](err); err == nil || exited || errors.Is(err,
		target.ErrNotAccessible) {
		return err
	}
	return fmt.Errorf("%w: %w", target.ErrNotAccessible, err)
}

// Session implements remote.Connection.
func (i *inside) Session(line string) (net.Conn, error) {
	e, err := i.api.executor(i.pod, line, true)
	if err != nil {
		return nil, err
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	// A stream to a node that is gone ends when the API server has noticed, whatever its context says.
	context.AfterFunc(i.life, func() {
		_ = outW.CloseWithError(io.EOF) // they never fail
		_ = inR.CloseWithError(io.EOF)
	})
	go func() {
		errs := remote.Tail{Most: mostSaid}
		err := e.StreamWithContext(i.life, remotecommand.StreamOptions{Stdin: inR, Stdout: outW, Stderr: &errs})
		_, exited := errors.AsType[exec.CodeExitError](err)
		switch said := strings.TrimSpace(errs.Text()); {
		case exited && said != "":
			err = remote.Ended(said)
		case err == nil || i.life.Err() != nil:
			err = io.EOF
		}
		_ = outW.CloseWithError(err) // it never fails
		_ = inR.CloseWithError(err)  // a Write would wait for ever
	}()
	return &session{Reader: outR, WriteCloser: inW, inside: i}, nil
}

// session is a command's input and output as a connection.
type session struct {
	io.Reader
	io.WriteCloser
	inside *inside
}

func (s *session) Close() error {
	return errors.Join(s.WriteCloser.Close(), s.inside.Close())
}

func (s *session) LocalAddr() net.Addr              { return podAddr(os.Args[0]) }
func (s *session) RemoteAddr() net.Addr             { return podAddr(s.inside.pod) }
func (s *session) SetDeadline(time.Time) error      { return nil } // pings tell that nobody is there
func (s *session) SetReadDeadline(time.Time) error  { return nil }
func (s *session) SetWriteDeadline(time.Time) error { return nil }

type podAddr string

func (podAddr) Network() string  { return "pod" }
func (p podAddr) String() string { return string(p) }

// why returns what the cluster says of an object that does not come to be: its last warning, else its last event.
func (a *api) why(ctx context.Context, name string) (said string) {
	ctx, cancel := limited(ctx)
	defer cancel()
	page, err := a.of(events).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name, Limit: 100})
	if err != nil {
		return ""
	}
	warned := false
	for _, e := range page.Items {
		one := untyped.Object(e.Object)
		message, is := strings.TrimSpace(one.Text("message")), one.Text("type") == "Warning"
		if message != "" && (is || !warned) {
			said, warned = one.Text("reason")+": "+message, is
		}
	}
	return said
}
