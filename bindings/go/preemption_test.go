// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"libdist.example/dist"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// preempted is a strategy with a variable "steps", of which each run adds one for each replica, and a handler.
func preempted(t *testing.T, path string, grace time.Duration) (*dist.PreemptionHandler, *dist.Variable, dist.ReplicaFunc) {
	t.Helper()
	s := newStrategy(t, dist.Options{Replicas: 2})
	v := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{0}),
		&dist.VariableOptions{Name: "steps", Aggregation: dist.AggregationSum}))
	h := must[*dist.PreemptionHandler](t)(s.NewPreemptionHandler(
		&dist.PreemptionOptions{Path: path, Variables: []*dist.Variable{v}, Grace: grace}))
	return h, v, func(r *dist.Replica) error { return r.Assign(v, dist.AssignAdd, dist.Of([]float32{1})) }
}

func TestPreemption(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	for start := range int64(2) {
		h, _, step := preempted(t, path, 0)
		is(t, "calls before", h.TotalRunCalls(), start)
		noError(t, h.Run(background, step))
		is(t, "state", must[dist.PreemptionState](t)(h.SaveIfPreempted(background)), dist.PreemptionNone)
		noError(t, h.Notify())
		noError(t, h.Notify())
		for range 2 {
			fails(t, h.Run(background, step), dist.ErrCancelled, "PreemptionHandler.Run: the job is preempted")
		}
		is(t, "state", must[dist.PreemptionState](t)(h.SaveIfPreempted(background)), dist.PreemptionOver)
		is(t, "calls", h.TotalRunCalls(), start+1)
		noError(t, h.Close())

		s := newStrategy(t, dist.Options{Replicas: 1})
		file := must[*dist.Checkpoint](t)(s.OpenCheckpoint(path))
		is(t, "runs in the file", file.Metadata("preemption.total_run_calls"), []string{"1", "2"}[start])
		value := must[*dist.Value](t)(file.Read("steps"))
		is(t, "steps in the file", value.String(), []string{"f32[1] [2]", "f32[1] [4]"}[start])
		value.Close()
		file.Close()
	}
}

func TestPreemptionGoesOnForItsGrace(t *testing.T) {
	h, _, step := preempted(t, filepath.Join(t.TempDir(), "checkpoint"), time.Hour)
	noError(t, h.Notify())
	noError(t, h.Run(background, step))
	is(t, "state", must[dist.PreemptionState](t)(h.SaveIfPreempted(background)), dist.PreemptionSaved)
	noError(t, h.CountRun())
	is(t, "calls", h.TotalRunCalls(), int64(2))
}

// TestPreemptionWaitEndsWithItsContext: worker 1 waits for worker 0, which is in a run until that wait is over.
func TestPreemptionWaitEndsWithItsContext(t *testing.T) {
	enough := errors.New("enough")
	over := make(chan struct{})
	nothing := func(*dist.Replica) error { return nil }
	results := onWorkers(newWorkers(t, dist.CallerThread, 1, 1), func(w int, s *dist.Strategy) error {
		h, err := s.NewPreemptionHandler(nil)
		if err != nil {
			return err
		}
		defer h.Close()
		first := nothing
		if w == 0 {
			first = func(*dist.Replica) error { <-over; return nil }
		}
		if err := s.Run(background, first); err != nil {
			return err
		}
		if w == 1 {
			ctx, cancel := context.WithCancelCause(background)
			go cancel(enough)
			_, err := h.SaveIfPreempted(ctx)
			close(over)
			if !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, enough) {
				return fmt.Errorf("the wait ended so: %w", err)
			}
		}
		for range 3 {
			if err := h.Run(background, nothing); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range results {
		noError(t, err)
	}
}

func TestPreemptionMisuse(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	v := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{0}), nil))
	for words, wrong := range map[string]dist.PreemptionOptions{
		"PreemptionOptions.Grace is -1": {Grace: -1},
		"no path":                       {Variables: []*dist.Variable{v}},
		"a variable is":                 {Path: "/nowhere/at/all", Variables: []*dist.Variable{nil}},
		"NUL":                           {Path: "a\x00b"},
	} {
		_, err := s.NewPreemptionHandler(&wrong)
		fails(t, err, dist.ErrInvalidArgument, words)
	}
	h := must[*dist.PreemptionHandler](t)(s.NewPreemptionHandler(nil))
	nothing := func(*dist.Replica) error { return nil }
	noError(t, h.Run(background, nothing))
	failed := newStrategy(t, dist.Options{Replicas: 1})
	other := must[*dist.PreemptionHandler](t)(failed.NewPreemptionHandler(nil))
	fails(t, other.Run(background, func(*dist.Replica) error { return dist.Errorf(dist.ErrNotFound, "mine") }),
		dist.ErrNotFound, "mine")
	is(t, "calls", other.TotalRunCalls(), int64(0))
	noError(t, failed.Close())
	fails(t, other.Run(background, nothing), dist.ErrFailedPrecondition, "strategy is closed")
	noError(t, other.Close()) // after its strategy
	noError(t, h.Close())
	noError(t, h.Close())
	for _, err := range []error{h.Run(background, nothing), h.Notify(), h.CountRun()} {
		fails(t, err, dist.ErrFailedPrecondition, "preemption handler is closed")
	}
	_, err := h.SaveIfPreempted(background)
	fails(t, err, dist.ErrFailedPrecondition, "preemption handler is closed")
	is(t, "calls", h.TotalRunCalls(), int64(0))
}
