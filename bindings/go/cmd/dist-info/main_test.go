// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const runsMain = "INFO_TEST_RUNS_MAIN"

// The test starts itself as the command.
func TestMain(m *testing.M) {
	if os.Getenv(runsMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// run returns what the command prints, and its exit status.
func run(t *testing.T, variable string, arguments ...string) (string, int) {
	t.Helper()
	command := exec.Command("/proc/self/exe", arguments...)
	command.Env = append(os.Environ(), runsMain+"=yes", variable)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), command.ProcessState.ExitCode()
}

func TestTheCommandIsDistInfo(t *testing.T) {
	for _, each := range []struct {
		variable, argument, text string
		status                   int
	}{
		{"TF_CONFIG=", "--version", "dist-info (libdist) ", 0},
		{"TF_CONFIG={", "--check", "TF_CONFIG is not JSON", 1},
		{"TF_CONFIG=", "--chekc", "--chekc", 2},
		{"PATH=/nonexistent", "--version", "Install the programs of libdist", 125},
	} {
		if text, status := run(t, each.variable, each.argument); status != each.status || !strings.Contains(text, each.text) {
			t.Errorf("%s %s: status %d\n%s", each.variable, each.argument, status, text)
		}
	}
}
