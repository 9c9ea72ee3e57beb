// Command ignition-merge merges Ignition configs by Ignition's own code, the later ones over the earlier ones, and
// prints the result. What Ignition reports about any of them, or about the result, is printed on stderr; any report
// is a failure.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/coreos/ignition/v2/config/validate"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: ignition-merge FILE ...")
		os.Exit(2)
	}
	merged, clean := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}, true
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		config, report, err := v3_5.ParseCompatibleVersion(data)
		if err != nil || len(report.Entries) > 0 {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", path, err, report.String())
			clean = false
		}
		merged = v3_5.Merge(merged, config)
	}
	if report := validate.ValidateWithContext(merged, nil); len(report.Entries) > 0 {
		fmt.Fprintf(os.Stderr, "merged: %s", report.String())
		clean = false
	}
	if err := json.NewEncoder(os.Stdout).Encode(merged); err != nil || !clean {
		os.Exit(1)
	}
}
