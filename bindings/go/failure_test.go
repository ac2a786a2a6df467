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

// A test that fails inside a replica function, as tests do; played in a process of its own.
func TestFatalInAReplica(t *testing.T) {
	options := dist.Options{Replicas: 2}
	switch os.Getenv("DIST_TEST_FATAL") {
	case "":
		t.Skip("TestFatalsAreErrors plays it")
	case "goroutines":
		options.Threads = dist.Goroutines
	case "library":
		options.Threads = dist.LibraryThreads
	case "no hop":
		options.HopGoroutine = dist.No
	}
	s, err := dist.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Run(background, func(r *dist.Replica) error {
		if r.ID() == 0 {
			t.Fatal("as one does in a test")
		}
		return r.Barrier()
	})
	t.Log("the run:", err)
	usable(t, s)
}

func TestAfterAFatal(t *testing.T) { t.Log("the next test has run") }

func TestFatalsAreErrors(t *testing.T) {
	for _, how := range []string{"default", "library", "goroutines"} {
		out, _ := playFatal(how)
		for _, words := range []string{"as one does in a test", "the run: dist: UNKNOWN", "Goexit", "the next test has run"} {
			if !strings.Contains(out, words) {
				t.Errorf("%s: %q is missing:\n%s", how, words, out)
			}
		}
	}
}

// Without a hop C waits for the function: the process ends with words, and before any function that was deferred below.
func TestGoexitWithoutAHopSaysWhy(t *testing.T) {
	for range 10 {
		out, code := playFatal("no hop")
		if code != 2 || !strings.Contains(out, "panic: dist: a function that libdist called ended by runtime.Goexit") ||
			strings.Contains(out, "SIG") {
			t.Fatalf("exit status %d:\n%s", code, out)
		}
	}
}

func playFatal(how string) (out string, code int) {
	child := exec.Command(os.Args[0], "-test.run=^TestFatalInAReplica$|^TestAfterAFatal$", "-test.v")
	child.Env = append(os.Environ(), "DIST_TEST_FATAL="+how)
	all, _ := child.CombinedOutput()
	return string(all), child.ProcessState.ExitCode()
}

// Of two goroutines with one replica, the one whose function it is has it.
func TestReplicaOnAnotherGoroutine(t *testing.T) {
	onAllThreads(t, 2, func(t *testing.T, s *dist.Strategy) {
		others := make([]error, s.NumReplicas())
		if err := s.Run(background, func(r *dist.Replica) error {
			data := []float32{1}
			refused := make(chan error)
			go func() { refused <- dist.AllReduce(r, dist.Sum, []float32{2}) }()
			err := dist.AllReduce(r, dist.Sum, data)
			others[r.ID()] = <-refused
			if err == nil && (data[0] != 2 || r.NumReplicas() != 2) {
				err = fmt.Errorf("the sum is %v", data)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		for id, err := range others {
			if !errors.Is(err, dist.ErrFailedPrecondition) || !strings.Contains(err.Error(), fmt.Sprintf("handle of replica %d", id)) ||
				!strings.Contains(err.Error(), "goroutine") || strings.Contains(err.Error(), "thread") {
				t.Error(id, err)
			}
		}
		usable(t, s)
	})
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
