// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// train returns the output line with the digest of the parameters.
func train(t *testing.T, o options) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the checked loops of a trainer take their time")
	}
	o.seed, o.data = 1, "../../../../examples/data/digits.csv"
	var out strings.Builder
	if err := run(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	return digestOf(out.String())
}

func digestOf(output string) string {
	for _, line := range strings.Split(output, "\n") {
		if digest, found := strings.CutPrefix(line, "parameters: "); found {
			return digest
		}
	}
	return "none in: " + output
}

func TestReproducibleSumsDoNotDependOnReplicas(t *testing.T) {
	one := train(t, options{replicas: 1, epochs: 1, reproducible: true})
	if many := train(t, options{replicas: 5, epochs: 1, reproducible: true}); many != one || len(one) != 64 {
		t.Errorf("%s with 5 replicas, %s with 1", many, one)
	}
}

// TestSameBitsAsC compares the parameters with those of the C program that DIST_TRAIN_DIGITS names.
func TestSameBitsAsC(t *testing.T) {
	program := os.Getenv("DIST_TRAIN_DIGITS")
	if program == "" {
		t.Skip("DIST_TRAIN_DIGITS does not name the C program")
	}
	for _, o := range []options{{replicas: 2, epochs: 2}, {replicas: 3, epochs: 2, reproducible: true}} {
		numerics := map[bool]string{false: "ordered", true: "reproducible"}[o.reproducible]
		out, err := exec.Command(program, "--epochs", fmt.Sprint(o.epochs), "--replicas", fmt.Sprint(o.replicas),
			"--numerics", numerics).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if c, ours := digestOf(string(out)), train(t, o); c != ours {
			t.Errorf("%d replicas, %s: %s, and C has %s", o.replicas, numerics, ours, c)
		}
	}
}
