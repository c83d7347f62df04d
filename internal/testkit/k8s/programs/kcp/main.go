// Kcp is the whole of Kubernetes in one binary: its first argument says which part runs.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	part := ""
	if len(os.Args) > 1 {
		part = os.Args[1]
	}
	os.Args = append([]string{"kcp " + part}, os.Args[min(2, len(os.Args)):]...)
	var command *cobra.Command
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	default:
		fmt.Fprintf(os.Stderr, "no part %q: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet\n",
			part)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
