// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

// ownFunctions answer all questions.
func ownFunctions(t *testing.T) dist.ResolverFunctions {
	spec := newSpec(t, twoJobs...)
	return dist.ResolverFunctions{
		Spec:        func() (*dist.ClusterSpec, error) { return spec, nil },
		TaskType:    func() (string, bool, error) { return "worker", true, nil },
		TaskID:      func() (int, error) { return 1, nil },
		RPCLayer:    func() (string, bool, error) { return "own", true, nil },
		Environment: func() (string, bool, error) { return "", false, nil },
		Master: func(taskType string, taskID int, layer *string) (string, error) {
			if layer == nil {
				return fmt.Sprint(taskType, taskID == dist.TaskUnset), nil
			}
			return fmt.Sprint(taskType, "/", taskID, "/", *layer), nil
		},
		NumAccelerators: func(string, int) (int, error) { return 7, nil },
	}
}

func TestResolverOfTheProgramsOwn(t *testing.T) {
	functions := ownFunctions(t)
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
	closed(t, union, err)
	for _, r := range []*dist.ClusterResolver{r, union} {
		spec, err := r.Spec()
		is(t, "spec", all(spec.JSON(), err), all(twoJobsJSON, nil))
		is(t, "type", all(r.TaskType()), all("worker", true, nil))
		is(t, "id", all(r.TaskID()), all(1, nil))
		is(t, "accelerators", all(r.NumAccelerators("ps", 3)), all(7, nil))
	}
	is(t, "layer", all(r.RPCLayer()), all("own", true, nil))
	is(t, "environment", all(r.Environment()), all("", false, nil))
	is(t, "master", all(r.Master("ps", 3, dist.Given("x"))), all("ps/3/x", nil))
	is(t, "empty layer", all(r.Master("ps", 3, dist.Given(""))), all("ps/3/", nil))
	given, err := dist.NewHostResolver(functions, &dist.ResolverOptions{TaskType: dist.Given("chief")})
	closed(t, given, err)
	is(t, "given type", all(given.TaskType()), all("chief", true, nil))
	only, err := dist.NewHostResolver(dist.ResolverFunctions{Spec: functions.Spec}, nil)
	closed(t, only, err)
	is(t, "no id", all(only.TaskID()), all(dist.TaskUnset, nil))
	is(t, "address", all(only.Master("worker", 1, nil)), all("b:2", nil))
	_, err = dist.NewHostResolver(dist.ResolverFunctions{}, nil)
	fails(t, err, dist.ErrInvalidArgument, "")
}

func TestWhatAResolversFunctionsFailWith(t *testing.T) {
	mine := errors.New("mine")
	functions := ownFunctions(t)
	gone, err := dist.NewClusterSpec(nil)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var spec *dist.ClusterSpec
	var failure error
	functions.Spec = func() (*dist.ClusterSpec, error) { return spec, failure }
	functions.TaskType = func() (string, bool, error) { return strings.Repeat("x", dist.MaxAddressBytes), true, nil }
	functions.TaskID = func() (int, error) { return -1 << 40, nil }
	functions.RPCLayer = func() (string, bool, error) { return "a\x00b", true, nil }
	functions.Environment = func() (string, bool, error) { panic(mine) }
	functions.NumAccelerators = func(string, int) (int, error) { return 0, dist.Errorf(dist.ErrUnavailable, "not yet") }
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
	closed(t, union, err)
	s := newStrategy(t, dist.Options{Replicas: 1, ClusterResolver: union})
	borrowed, err := s.ClusterResolver()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*dist.ClusterResolver{r, union, borrowed} {
		spec, failure = nil, mine
		_, err := r.Spec()
		is(t, "own error", err, mine)
		failure = nil
		_, err = r.Spec()
		fails(t, err, dist.ErrInvalidArgument, "Spec gave no")
		spec = gone
		_, err = r.Spec()
		fails(t, err, dist.ErrFailedPrecondition, "closed")
		_, _, err = r.TaskType()
		fails(t, err, dist.ErrInvalidArgument, "too long")
		_, err = r.TaskID()
		fails(t, err, dist.ErrInvalidArgument, "32 bits")
		_, _, err = r.RPCLayer()
		fails(t, err, dist.ErrInvalidArgument, "NUL")
		_, _, err = r.Environment()
		var panicked *dist.PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, mine) {
			t.Error("panic:", err)
		}
		_, err = r.NumAccelerators("", dist.TaskUnset)
		fails(t, err, dist.ErrUnavailable, "not yet")
		text, err := r.Explain()
		is(t, "explained", all(strings.Contains(text, "not yet"), err), all(true, nil))
	}
}

func TestAStrategysResolver(t *testing.T) {
	r, err := dist.NewHostResolver(ownFunctions(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStrategy(t, dist.Options{Replicas: 2, ClusterResolver: r})
	r.Close()
	runtime.GC()
	borrowed, err := s.ClusterResolver()
	if err != nil {
		t.Fatal(err)
	}
	is(t, "id", all(borrowed.TaskID()), all(1, nil))
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{borrowed}, nil)
	closed(t, union, err)
	borrowed.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = borrowed.TaskID()
	fails(t, err, dist.ErrFailedPrecondition, "closed")
	is(t, "of the union", all(union.TaskID()), all(1, nil))
	_, err = s.ClusterResolver()
	fails(t, err, dist.ErrFailedPrecondition, "closed")
	is(t, "without", all(newStrategy(t, dist.Options{Replicas: 1}).ClusterResolver()), all((*dist.ClusterResolver)(nil), nil))
}

func TestSeveralGoroutinesAskAResolver(t *testing.T) {
	functions := ownFunctions(t)
	functions.TaskID = func() (int, error) { return 0, io42 }
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				if _, err := r.TaskID(); err != io42 {
					t.Error(err)
				}
				if spec, err := r.Spec(); err != nil || spec.Close() != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
}

var io42 = errors.New("42")

func TestAForgottenResolverEnds(t *testing.T) {
	ended := make(chan struct{})
	func() {
		functions := ownFunctions(t)
		held := &struct{ big [4]*int }{}
		runtime.AddCleanup(held, func(ended chan struct{}) { close(ended) }, ended)
		functions.TaskID = func() (int, error) {
			if held.big[0] != nil {
				return 0, nil
			}
			return 1, nil
		}
		r, err := dist.NewHostResolver(functions, nil)
		if err != nil {
			t.Fatal(err)
		}
		union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
		is(t, "union", all(union.TaskID()), all(1, nil))
		is(t, "made", err, nil)
	}()
	for deadline := time.Now().Add(time.Minute); ; {
		runtime.GC()
		select {
		case <-ended:
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the resolver's functions are still held")
		}
		runtime.Gosched()
	}
}
