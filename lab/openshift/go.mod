module metal-ipi.test/lab/openshift

go 1.25.0

require (
	golang.org/x/sys v0.33.0
	gopkg.in/yaml.v3 v3.0.1
)
