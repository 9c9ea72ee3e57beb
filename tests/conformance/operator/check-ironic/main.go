// Command check-ironic reads a resource `Ironic` (JSON) and has the operator's own types take it: a field that they do
// not know is a failure.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/metal3-io/ironic-standalone-operator/api/v1alpha1"
)

func main() {
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	var ironic v1alpha1.Ironic
	if err := decoder.Decode(&ironic); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(ironic.Spec)
}
