//go:build tools

// Package runc pins the runc that tests of user namespaces run.
package runc

import _ "github.com/opencontainers/runc"
