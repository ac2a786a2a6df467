// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"libdist.example/dist"
)

// The same ten errors in every language: ../errors.txt has what each says.
func TestTheSameErrors(t *testing.T) {
	file, err := os.ReadFile("../errors.txt")
	if err != nil {
		t.Skip("the file of errors is not there")
	}
	want, name := map[string]string{}, ""
	for _, line := range strings.Split(string(file), "\n") {
		if said, found := strings.CutPrefix(line, "  Go | "); found {
			want[name] = said
		} else if !strings.HasPrefix(line, " ") {
			name = line
		}
	}

	strategy := newStrategy(t, dist.Options{Replicas: 2})
	ctx := context.Background()
	run := func(step func(r *dist.Replica) error) error { return strategy.Run(ctx, step) }
	var ended *dist.Replica
	noError(t, run(func(r *dist.Replica) error {
		if r.ID() == 0 {
			ended = r
		}
		return nil
	}))
	variable, err := strategy.NewVariable(dist.Of(make([]float32, 2)), &dist.VariableOptions{Name: "w"})
	noError(t, err)
	defer variable.Close()
	longer, err := strategy.NewTensor(dist.Of(make([]float32, 3)))
	noError(t, err)
	defer longer.Close()
	broken := "{"
	resolver, err := dist.NewTFConfigResolver(&dist.ResolverOptions{TFConfig: &broken})
	noError(t, err)
	defer resolver.Close()

	for name, call := range map[string]func() error{
		"replicas": func() error { _, err := dist.New(dist.Options{Replicas: -1}); return err },
		"group":    func() error { _, err := strategy.NewGroup(0, 7); return err },
		"shapes": func() error {
			return run(func(r *dist.Replica) error {
				return dist.AllReduce(r, dist.Sum, make([]float32, 2+r.ID()), dist.Tag("gradients"))
			})
		},
		"left": func() error {
			return run(func(r *dist.Replica) error {
				if r.ID() == 1 {
					return nil
				}
				return r.Barrier()
			})
		},
		"root": func() error {
			return run(func(r *dist.Replica) error { return dist.Broadcast(r, 7, make([]float32, 1)) })
		},
		"stale":      func() error { return ended.Barrier() },
		"assign":     func() error { return variable.Assign(dist.AssignSet, longer) },
		"checkpoint": func() error { _, err := strategy.OpenCheckpoint("/nothing/here"); return err },
		"tf_config":  func() error { _, err := resolver.Spec(); return err },
		"device":     func() error { _, err := dist.CanonicalDevice("GPU:x"); return err },
	} {
		var report *dist.Error
		if !errors.As(call(), &report) {
			t.Errorf("%s gives no error", name)
		} else if said := report.Function + " | " + report.Parameter + " | " + report.Message; said != want[name] {
			t.Errorf("%s is\n%s, expected\n%s", name, said, want[name])
		}
	}
}
