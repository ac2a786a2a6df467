// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"libdist.example/dist"
)

// Options of kinds that no other test would miss.

func TestTimeoutOfCommunicationReplacesTheStrategys(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2, Communication: &dist.CommunicationOptions{Timeout: time.Millisecond}})
	gaveUp := make(chan struct{})
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 1 {
			defer close(gaveUp)
			return r.Barrier()
		}
		<-gaveUp
		return nil
	})
	if !errors.Is(err, dist.ErrDeadlineExceeded) {
		t.Errorf("the barrier failed with %v, want ErrDeadlineExceeded", err)
	}
}

func TestRequestIDIsInTheTrace(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1, Threads: dist.LibraryThreads})
	request := must[*dist.Request](t)(s.Submit(background, func(*dist.Replica) error { return nil },
		dist.SubmitOptions{RequestID: 987654321}))
	if err := request.Wait(background); err != nil {
		t.Fatal(err)
	}
	if trace := must[string](t)(s.WriteTrace()); !strings.Contains(trace, "987654321") {
		t.Errorf("the trace has no request 987654321: %s", trace)
	}
}

func TestRunOptionsAreChecked(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	nothing := func(*dist.Replica, *dist.Value, *dist.Value) (*dist.Value, error) { return nil, nil }
	_, err := s.RunValues(background, nothing, nil, &dist.RunOptions{EnableDynamicBatchSize: 7})
	fails(t, err, dist.ErrInvalidArgument, "RunOptions.EnableDynamicBatchSize is 7")
}
