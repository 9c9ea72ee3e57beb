// Command lab-openshift is the lab's stand-in for OpenShift: the installer and the services its nodes run.
//
// It is one binary with several names. Called `openshift-install` it behaves like Red Hat's installer as far as
// an installation on platform none needs it; called `lab-openshift` it runs what the Ignition configs of that
// installer start on a node; by any other name it is a program of a simulated machine that asks the machine's hardware.
// It is used only in the lab; see README.md beside go.mod for what it stands for.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"metal-ipi.test/lab/openshift/hardware"
	"metal-ipi.test/lab/openshift/installer"
	"metal-ipi.test/lab/openshift/node"
)

const usage = `usage: lab-openshift openshift-install COMMAND ...
       lab-openshift bootstrap|bootstrap-in-place|control-plane|worker    services of the stand-in's machines
       lab-openshift bootkube|kubelet|firstboot|br-ex    programs in the place of OpenShift's, below their real units
       lab-openshift operators DIRECTORY    what keeps such a cluster true, from outside of its machines
       lab-openshift small-apiserver FLAGS    a small API server, where there is no kube-apiserver
       lab-openshift pull IMAGE

See lab/openshift/README.md.
`

// programs take the place of OpenShift's own on machines of the real installer.
var programs = map[string]func() int{
	"bootkube": node.Bootkube, "kubelet": node.Kubelet, "firstboot": node.FirstBoot, "br-ex": node.Bridge,
	"container": node.Container,
}

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "lab-openshift":
	case "openshift-install":
		os.Exit(installer.Main(os.Args[0], os.Args[1:]))
	default:
		os.Exit(hardware.Ask(name, os.Args[1:]))
	}
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if program, found := programs[os.Args[1]]; found && len(os.Args) == 2 {
		os.Exit(program())
	}
	switch os.Args[1] {
	case "small-apiserver":
		os.Exit(node.Small(os.Args[2:]))
	case "openshift-install":
		os.Exit(installer.Main(os.Args[1], os.Args[2:]))
	case "operators":
		if len(os.Args) == 3 {
			os.Exit(node.Operators(os.Args[2]))
		}
	case "pull":
		if len(os.Args) == 3 {
			os.Exit(node.Pull(os.Args[2]))
		}
	case "bootstrap", "bootstrap-in-place", "control-plane", "worker":
		if len(os.Args) == 2 {
			os.Exit(node.Main(node.Role(os.Args[1])))
		}
	}
	fmt.Fprint(os.Stderr, usage)
	os.Exit(2)
}
