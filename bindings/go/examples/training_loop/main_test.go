// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

func Example_main() {
	os.Args = os.Args[:1]
	main()
	// Output:
	// epoch 1: loss 0.2661, accuracy 93.3%
	// epoch 2: loss 0.1371, accuracy 97.9%
	// epoch 3: loss 0.1166, accuracy 98.2%
	// epoch 4: loss 0.1036, accuracy 98.4%
	// epoch 5: loss 0.0945, accuracy 98.9%
	// epoch 6: loss 0.0880, accuracy 98.7%
	// epoch 7: loss 0.0830, accuracy 99.2%
	// epoch 8: loss 0.0787, accuracy 99.1%
	// weights 4015768d 4099fa4d bf096af3
}

// TestSameBitsAsC compares the whole output with that of the C program that DIST_TRAINING_LOOP names.
func TestSameBitsAsC(t *testing.T) {
	program := os.Getenv("DIST_TRAINING_LOOP")
	if program == "" {
		t.Skip("DIST_TRAINING_LOOP does not name the C program")
	}
	for _, replicas := range []int{1, 2, 3} {
		c, err := exec.Command(program, string(rune('0'+replicas))).Output()
		if err != nil {
			t.Fatal(err)
		}
		if ours := output(t, replicas); ours != string(c) {
			t.Errorf("%d replicas:\n%s\nand C has\n%s", replicas, ours, c)
		}
	}
}

// output returns the output of run.
func output(t *testing.T, replicas int) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = write
	failed := run(t.Context(), replicas)
	os.Stdout = before
	write.Close()
	text, err := io.ReadAll(read)
	if failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return string(text)
}
