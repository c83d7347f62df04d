// Package k8s starts a real Kubernetes of two nodes on this machine, in 10 to 20 seconds, for tests and for people:
//
//	cluster := k8s.Start(t)             // one for all tests of a package's process
//	go run ./internal/testkit/k8s/up    // says how to use and to stop it
//
// Root starts it, on Linux with containerd, runc, containernetworking-plugins, busybox-static, openipmi
// (setup/packages); elsewhere tests are skipped with the reason.
//
// # What is real
//
// Etcd, the API server, the controllers, the scheduler and the kubelets are Kubernetes v1.36.3 in one binary, built
// from the nested module ./programs (the main module imports nothing of it, and `go build ./...` does not see it),
// with external-provisioner v5.3.0 and external-snapshotter v8.4.0. They lie in ~/.cache/plimsoll-tests/k8s-HASH,
// where the hash is of the module's sources and sums: the first build takes some 830 seconds of one processor, a
// change of our own driver one link. containerd, runc and the CNI plug-ins are the distribution's.
//
// Ours is the storage driver, programs/csi, which passes csi-sanity: a volume is a sparse file under a loop device,
// so that ReadWriteOnce is kept by nobody, as with every driver that attaches nothing. There is no kube-proxy and no
// DNS: services have no addresses that answer. Accepted and not enforced: NetworkPolicy.
//
// # How it is built
//
// The command ./up starts itself anew as the first process of a process namespace with a mount, a network and an IPC
// namespace (stage control): etcd and its kind, the bridge and the BMCs run there. Each node is another such
// namespace in it (stage node) with an own UTS and group namespace, /run, /var/lib, /var/log and /sys, where
// containerd, the kubelet and the driver have the places that they have everywhere. To cut a node's power is to kill
// its first process, whereupon the kernel ends all others, its mounts and its links; its /var/lib stays. ipmi_sim
// does that, on an address of its own for each node: chassis power off and on by ipmitool are the real thing.
//
// Nothing is left: processes, mounts, network namespaces, bridge and routes are of the namespaces and go with their
// first process, which goes with the command, which goes with the tests, also at kill -9. The command then removes
// the groups, the loop devices and the folder, /tmp/plimsoll-k8s-XXXX; where it is killed itself, the next one does.
// Settings of the kernel that a kubelet makes are files in its namespace.
//
// Several run beside each other: each has its folder, its groups plimsoll-k8s-XXXX, and a /20 of 198.18.0.0/15 (set
// aside for tests of networks) that no address or route of the machine has. This machine is .0.253 in it, the API
// server .0.254:6443, node N .0.N with its pods in .N.0/24, and its BMC .0.(100+N). Pods are reached from this
// machine.
//
// # What a test does with it
//
// Call asks the API server, with no client linked; Kubeconfig is for those that are. SetPower and the BMCs cut a
// node's power, SetPart ends the API server or another part for a while, and On runs a program on a node: `pkill
// -KILL -f "kcp kubelet"` kills a kubelet, which is back a second later while its pods run on. Load imports images.
// Holds counts what lies and runs on the machine for the cluster's users, and Audit is the file of all requests.
// Another gives a test a cluster of its own.
// Play adds nodes by the hundred that kwok plays, for which it is built from the nested module ./kwok; nothing runs
// there.
//
// # What is not as elsewhere
//
//   - Nodes share this machine's kernel, clock and /dev, and have no limits. Those of a container hold (exit 137).
//   - A node is NotReady 12 s after its last word (40 s elsewhere).
//   - The kubelet makes no groups per pod (cgroupsPerQOS is off): limits are those of the containers.
//   - Snapshots hold what has reached the file: what a node has in memory must be flushed first.
//   - On a machine with control groups of version 2 alone it has not been tried.
package k8s
