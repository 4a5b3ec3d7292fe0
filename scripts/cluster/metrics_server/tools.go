//go:build tools

// Package metrics_server pins the metrics-server that the test of `kubectl top` runs.
package metrics_server

import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
