// Csi is a storage driver for tests: a volume is a sparse file of a folder that all nodes see, below a loop device on
// the node that uses it. Snapshots and clones are copies of the file as it is at that moment: what a node still has
// in memory is not in them.
//
// Loop devices carry the name ID/NODE/VOLUME and vanish when this process ends: nothing holds them open then.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver serves all three services; only a node's is registered with a kubelet.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	name, id, node, volumes, endpoint string

	mu       sync.Mutex
	attached map[string]*os.File // the loop devices by volume: open, since they vanish when nobody has them so
}

func main() {
	d := &driver{attached: map[string]*os.File{}}
	flag.StringVar(&d.name, "name", "csi.plimsoll.test", "of the driver")
	flag.StringVar(&d.id, "id", "plimsoll-csi", "of the cluster")
	flag.StringVar(&d.node, "node", "node0", "where it runs")
	flag.StringVar(&d.volumes, "volumes", "", "the folder of the volumes' files")
	flag.StringVar(&d.endpoint, "endpoint", "", "the socket on which it serves")
	register := flag.String("register", "", "the socket by which a kubelet finds it")
	flag.Parse()
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	if err := serve(server, d.endpoint); err != nil {
		fatal(err)
	}
	if *register != "" {
		found := grpc.NewServer()
		registration.RegisterRegistrationServer(found, d)
		if err := serve(found, *register); err != nil {
			fatal(err)
		}
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	<-end
}

func serve(server *grpc.Server, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	_ = os.Remove(socket) // that of a process before
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() { fatal(server.Serve(listener)) }()
	return nil
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "csi:", err)
	os.Exit(1)
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: d.name, Endpoint: d.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error) {
	if !r.PluginRegistered {
		fatal(fmt.Errorf("the kubelet refuses it: %s", r.Error))
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (
	*csi.GetPluginCapabilitiesResponse, error) {
	r := &csi.GetPluginCapabilitiesResponse{}
	for _, kind := range []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE,
		csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		r.Capabilities = append(r.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: kind}}})
	}
	return r, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
