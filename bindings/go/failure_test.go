// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

// usable checks that a strategy still works after a failure.
func usable(t *testing.T, s *dist.Strategy) {
	t.Helper()
	if err := s.Run(background, func(r *dist.Replica) error {
		return dist.AllReduce(r, dist.Sum, []float32{1})
	}); err != nil {
		t.Error("the strategy is not usable any more:", err)
	}
}

func TestReplicasOwnErrorComesBack(t *testing.T) {
	onAllThreads(t, 4, func(t *testing.T, s *dist.Strategy) {
		for again := 0; again < 2; again++ { // the same error twice is two failures
			peers := make([]error, s.NumReplicas())
			err := s.Run(background, func(r *dist.Replica) error {
				if r.ID() == 2 {
					return io.ErrUnexpectedEOF
				}
				peers[r.ID()] = dist.AllReduce(r, dist.Sum, make([]float32, 8), dist.Tag("grads"))
				return fmt.Errorf("step 3: %w", peers[r.ID()])
			})
			if err != io.ErrUnexpectedEOF {
				t.Fatalf("%T %v", err, err)
			}
			for _, id := range []int{0, 1, 3} {
				var report *dist.Error
				if !errors.As(peers[id], &report) || !errors.Is(peers[id], dist.ErrAborted) {
					t.Fatal(id, peers[id])
				}
				if report.Replica != 2 || !strings.Contains(report.Message, io.ErrUnexpectedEOF.Error()) {
					t.Errorf("replica %d: %+v", id, report)
				}
			}
		}
		usable(t, s)
	})
}

func TestReportHasFields(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3})
	err := s.Run(background, func(r *dist.Replica) error {
		if err := r.Barrier(); err != nil {
			return err
		}
		n := 4
		if r.ID() == 1 {
			n = 5
		}
		return dist.AllReduce(r, dist.Sum, make([]float32, n), dist.Tag("ünïcode"))
	})
	var report *dist.Error
	if !errors.As(err, &report) {
		t.Fatal(err)
	}
	if report.Code != dist.ErrInvalidArgument || report.Replica != 1 || report.Sequence != 2 ||
		report.Collective != dist.CollectiveAllReduce || report.Tag != "ünïcode" ||
		report.Expected == "" || report.Received == "" {
		t.Errorf("%+v", report)
	}
	usable(t, s)
}

func TestPanicBecomesError(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		err := s.Run(background, func(r *dist.Replica) error {
			if r.ID() == 1 {
				var nowhere *int
				*nowhere = 1 // SIGSEGV on a thread that Go may not have made
			}
			return r.Barrier()
		})
		var panicked *dist.PanicError
		var fault runtime.Error
		if !errors.As(err, &panicked) || panicked.Replica != 1 || !errors.As(err, &fault) {
			t.Fatal(err)
		}
		if !strings.Contains(string(panicked.Stack), "TestPanicBecomesError") {
			t.Errorf("the stack does not lead to the replica function:\n%s", panicked.Stack)
		}
		usable(t, s)
	})
}

func TestContextEndsABlockedCollective(t *testing.T) {
	onAllThreads(t, 3, func(t *testing.T, s *dist.Strategy) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		var peers sync.WaitGroup
		peers.Add(2)
		err := s.Run(ctx, func(r *dist.Replica) error {
			if r.ID() == 0 {
				cancel()
				peers.Wait() // never joins the barrier that they are in
				return nil
			}
			defer peers.Done()
			return r.Barrier()
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, dist.ErrCancelled) {
			t.Fatal(err)
		}
		usable(t, s)
		if err := s.Run(ctx, func(*dist.Replica) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A run whose context ends while it waits for its turn must not end the run that has it.
func TestContextOfAWaitingRunSparesTheOther(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	waiting := make(chan error, 1)
	ran := make(chan struct{}, 2)
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			go func() {
				waiting <- s.Run(ctx, func(*dist.Replica) error {
					ran <- struct{}{}
					return nil
				})
			}()
			runtime.Gosched()
			cancel()
		}
		for i := 0; i < 100; i++ {
			if err := r.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error("the running one:", err)
	}
	if err := <-waiting; !errors.Is(err, context.Canceled) || len(ran) != 0 {
		t.Error("the waiting one:", err)
	}
	usable(t, s)
}

func TestTimeoutOfOneCollective(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	reported := make(chan struct{})
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 1 {
			defer close(reported)
			return r.Barrier(dist.Timeout(time.Millisecond))
		}
		<-reported // stays away until the peer has given up
		return nil
	})
	if !errors.Is(err, dist.ErrDeadlineExceeded) {
		t.Error(err)
	}
	usable(t, s)
}

func TestMisuse(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	var kept *dist.Replica
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			kept = r
		}
		if err := s.Run(background, func(*dist.Replica) error { return nil }); !errors.Is(err, dist.ErrFailedPrecondition) {
			return fmt.Errorf("Run inside a replica: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := kept.Barrier(); !errors.Is(err, dist.ErrFailedPrecondition) {
		t.Error("a kept replica:", err)
	}
	if err := (*dist.Replica)(nil).Barrier(); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("a nil replica:", err)
	}
	if err := s.Run(background, nil); !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("a nil function:", err)
	}
	err = s.Run(background, func(r *dist.Replica) error {
		return dist.AllReduce(r, dist.ReduceOp(1<<32+1), []float32{1})
	})
	if !errors.Is(err, dist.ErrInvalidArgument) {
		t.Error("an unknown operator:", err)
	}
	usable(t, s)
}

func TestGoexitOnGoroutinesIsAnError(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 3, Threads: dist.Goroutines})
	err := s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			runtime.Goexit()
		}
		return r.Barrier()
	})
	if !errors.Is(err, dist.ErrUnknown) || !strings.Contains(err.Error(), "Goexit") {
		t.Error(err)
	}
	usable(t, s)
}

// On libdist's threads it ends the process, with words; seen from a second process.
func TestGoexitOnNativeThreadsSaysWhy(t *testing.T) {
	if threads := os.Getenv("DIST_TEST_GOEXIT"); threads != "" {
		s, err := dist.New(dist.Options{Replicas: 1, Threads: dist.Threads(threads[0] - '0')})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Run(background, func(*dist.Replica) error {
			runtime.Goexit()
			return nil
		})
		return
	}
	for _, threads := range []string{"0", "1"} {
		child := exec.Command(os.Args[0], "-test.run=^TestGoexitOnNativeThreadsSaysWhy$")
		child.Env = append(os.Environ(), "DIST_TEST_GOEXIT="+threads)
		out, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "ended by runtime.Goexit") {
			t.Errorf("threads %s: %v\n%s", threads, err, out)
		}
	}
}

// threads counts this process's threads, libdist's too.
func threads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	return len(tasks)
}

func TestForgottenStrategiesAreCleanedUp(t *testing.T) {
	const forgotten, replicas = 10, 8
	before := threads(t)
	for i := 0; i < forgotten; i++ {
		s, err := dist.New(dist.Options{Replicas: replicas, Threads: dist.LibraryThreads})
		if err != nil {
			t.Fatal(err)
		}
		usable(t, s)
	}
	deadline := time.Now().Add(20 * time.Second)
	for threads(t) > before+forgotten*replicas/2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads before, still %d", before, threads(t))
		}
		runtime.GC()
		time.Sleep(time.Millisecond) // gives the finalizers' goroutine a turn
	}
}
