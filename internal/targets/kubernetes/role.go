package kubernetes

import (
	"fmt"
	"strings"

	"plimsoll/internal/contract/target"
)

var _ target.RoleGiver = Provider{}

// Role implements target.RoleGiver, for kubectl apply: a Role in the namespace, a ClusterRole for what is in none, and
// what binds both to a service account of the namespace that is made besides. With power nodes may be switched off,
// with virtual machines are those of KubeVirt.
func (Provider) Role(namespace, account string, power, virtual bool) string {
	var own, all strings.Builder
	for _, r := range rights {
		if r.power && !power || r.virtual && !virtual {
			continue
		}
		b := &own
		if r.cluster {
			b = &all
		}
		name := r.resource
		if r.under != "" {
			name += "/" + r.under
		}
		fmt.Fprintf(b, "- {apiGroups: [%q], resources: [%q], verbs: [%s]}\n", r.group, name, strings.Join(r.verbs,
			", "))
	}
	return strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", account, "OWN\n", own.String(), "ALL\n",
		all.String()).Replace(
		`apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: plimsoll, namespace: NAMESPACE}
rules:
OWN
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: plimsoll, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: plimsoll}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plimsoll-NAMESPACE}
rules:
ALL
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plimsoll-NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plimsoll-NAMESPACE}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
`)
}
