// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// PartitionFunc returns into how many parts each dimension of a variable is divided, for example by calling
// [FixedShards]. The number must be at least 1 for the first dimension and 1 for the others. spec has only a
// DType and a Shape. The function is not called for scalars, and must not call the coordinator.
type PartitionFunc = func(spec RawTensor) ([]int, error)

// A Coordinator keeps variables on the parameter servers of a job and runs closures on its workers, like
// TensorFlow's ClusterCoordinator with a ParameterServerStrategy. Closures run concurrently and do not wait
// for each other: training is asynchronous. Several goroutines may use a Coordinator at the same time.
//
//	strategy, err := dist.New(dist.Options{Kind: dist.ParameterServer}) // TF_CONFIG lists the servers
//	coordinator, err := strategy.NewCoordinator(nil)
//	defer coordinator.Close() // also stops the servers
//	err = coordinator.CreateVariable("w", dist.Of(zeros), nil)
//	for range 1000 {
//		_, err = coordinator.Schedule(ctx, "train", batch)
//	}
//	err = coordinator.Join(ctx)
//	values, err := coordinator.Read("w")
//
// If a worker is lost, its closures run again on another worker. libdist applies the effects of each closure
// exactly once, however often it runs. If a parameter server is lost, its variables are lost too, and all
// further calls fail with [ErrAborted]; a restarted program can restore a checkpoint with
// [Coordinator.Restore].
type Coordinator struct {
	object
	shared  *sharedCoordinator
	waiting callers
}

// sharedCoordinator is the only coordinator of a strategy. Each caller that asks for it becomes an owner.
type sharedCoordinator struct {
	mu      sync.Mutex
	holders int
	given   *attached // of its options
}

// partitionCall is the object behind the token of a PartitionFunc.
type partitionCall struct {
	*failures
	fn     PartitionFunc
	inside atomic.Int32
}

// NewCoordinator returns the coordinator of a strategy of Kind [ParameterServer], whose ClusterResolver lists
// the servers. It does not block. A strategy has one coordinator: if it already exists, NewCoordinator
// returns it and ignores the options, and the coordinator ends when every caller has closed it. Close it
// before the strategy. options may be nil.
func (s *Strategy) NewCoordinator(options *CoordinatorOptions) (*Coordinator, error) {
	var u uses
	defer u.end()
	strategy, native := u.strategy(s), options.native(&u)
	defer cdist.DeleteDist_coordinator_options(native)
	if u.err != nil {
		return nil, u.err
	}
	if strategy == 0 {
		var out int64
		return nil, fromNative(cdist.Dist_coordinator_create(0, native, &out))
	}
	out, err := s.coordinator.hold(strategy, native, &u)
	if err != nil {
		return nil, err
	}
	shared := s.coordinator
	c := &Coordinator{shared: shared}
	c.open(out, shared.drop, s)
	return c, nil
}

// hold creates the coordinator, or returns the existing one.
func (s *sharedCoordinator) hold(strategy int64, options cdist.Dist_coordinator_options, u *uses) (native int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cdist.Dist_coordinator_create(strategy, options, &native); err != nil {
		return 0, fromNative(err)
	}
	if s.holders == 0 {
		s.given = u.keep()
	}
	s.holders++
	return native, nil
}

// drop removes an owner; the last one ends the coordinator.
func (s *sharedCoordinator) drop(native int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cdist.Dist_coordinator_destroy(native)
	if s.holders--; s.holders == 0 {
		s.given.end()
		s.given = nil
	}
}

// functions returns the functions in the coordinator's options, or nil if there are none.
func (s *sharedCoordinator) functions() *attached {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// partitioning reports whether the coordinator's partitioner runs.
func (s *sharedCoordinator) partitioning() bool {
	given := s.functions()
	return given != nil && slices.ContainsFunc(given.tokens, func(token int64) bool {
		p := registered[*partitionCall](token)
		return p != nil && p.inside.Load() > 0
	})
}

// Partition is called by libdist for a new variable.
func (callbacks) Partition(token, spec, partitions int64) int {
	c := registered[*partitionCall](token)
	return c.callback(func() error {
		c.inside.Add(1)
		defer c.inside.Add(-1)
		of := tensorAt(spec, 0, nil)
		parts, err := c.fn(of)
		if err != nil {
			return err
		}
		if len(parts) != len(of.Shape) {
			return newError(ErrInvalidArgument, "the partitioner gave %d numbers for a variable of %d dimensions", len(parts),
				len(of.Shape))
		}
		for i, n := range parts {
			cdist.Set_number_at(partitions, int64(i), int64(n))
		}
		return nil
	})
}

func (u *uses) coordinator(c *Coordinator) int64 {
	if c == nil {
		return 0
	}
	return u.take(&c.object, "coordinator")
}

// with calls a function with the coordinator's handle.
func (c *Coordinator) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.coordinator(c)
	if u.err != nil {
		return u.err
	}
	return fromNative(call(native))
}

// Close ends the coordinator if no other caller of [Strategy.NewCoordinator] holds it. Unfinished closures,
// and Schedule and Join calls in progress, fail with [ErrCancelled]; Close waits for other calls. libdist
// then asks the servers to stop. Remote values stay readable. Inside a [PartitionFunc], Close fails with
// [ErrFailedPrecondition]. Closing a nil or closed coordinator does nothing.
func (c *Coordinator) Close() error {
	if c == nil || c.shared == nil {
		return nil
	}
	if c.shared.partitioning() {
		return newError(ErrFailedPrecondition, "the coordinator's partitioner runs: close the coordinator afterwards")
	}
	c.waiting.end("the coordinator is closed")
	_, err := c.endBy(func(native int64) error {
		c.shared.drop(native)
		return nil
	})
	return err
}

// Schedule schedules one call of the closure that the workers have registered under the given name. The
// returned remote value receives its result; a caller that does not need the result may ignore it. libdist
// retains arguments, which may be nil, until the closure has finished, and their elements must not change
// until then.
//
// Schedule waits while there are MaxQueued unfinished closures. The end of ctx cancels only this wait. If an
// earlier closure has failed, the next call of Schedule, [Coordinator.Join] or [Coordinator.Done] returns its
// error, once, and schedules nothing.
func (c *Coordinator) Schedule(ctx context.Context, name string, arguments *Value) (*RemoteValue, error) {
	var u uses
	defer u.end()
	native, name, handle := u.coordinator(c), u.text(name), u.value(arguments)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := c.wait(ctx, func(call *timedCall) error {
		options := cdist.NewDist_schedule_options()
		defer cdist.DeleteDist_schedule_options(options)
		options.SetTimeout_ns(call.timeout(0))
		options.SetCancel(call.cancel.handle())
		return cdist.Dist_coordinator_schedule(native, name, handle, options, &out)
	})
	if err != nil {
		return nil, err
	}
	return newClosureResult(out, c), nil
}

// wait makes a call that its context and the end of the coordinator cancel.
func (c *Coordinator) wait(ctx context.Context, do func(call *timedCall) error) error {
	if c == nil {
		return (*callers)(nil).wait(ctx, do)
	}
	return c.waiting.wait(ctx, do)
}

// Join waits until all closures have finished. The end of ctx cancels only the wait.
func (c *Coordinator) Join(ctx context.Context) error {
	return c.with(func(native int64) error {
		return c.wait(ctx, func(call *timedCall) error {
			return cdist.Dist_coordinator_join(native, call.timeout(int64(NoTimeout)), call.cancel.handle())
		})
	})
}

// Done reports whether all closures have finished.
func (c *Coordinator) Done() (bool, error) {
	var out int32
	err := c.with(func(native int64) error { return cdist.Dist_coordinator_done(native, &out) })
	return out != 0, err
}

// CreatePerWorker runs the closure function once on each worker, before any further closure, and keeps its
// result on that worker under the given name. Closures get it with [Closure.PerWorker], so each worker can
// have its own dataset or buffer. A worker that returns after a loss runs the function again. The result is
// not sent and can be of any kind; [Strategy.NewObject] makes a value of a Go object. CreatePerWorker waits
// until the available workers have the result. If the function fails, CreatePerWorker returns its error.
func (c *Coordinator) CreatePerWorker(name, function string, arguments *Value) error {
	var u uses
	defer u.end()
	name, function, handle := u.text(name), u.text(function), u.value(arguments)
	if u.err != nil {
		return u.err
	}
	return c.with(func(native int64) error {
		return cdist.Dist_coordinator_create_per_worker(native, name, function, handle)
	})
}

// CoordinatorStats holds the counters of a coordinator.
type CoordinatorStats struct {
	NumPS         int
	NumWorkers    int
	WorkersUp     int   // workers that have closures or can take some
	Queued        int64 // closures that no worker has
	InFlight      int64 // closures that a worker has
	Scheduled     int64 // total
	Completed     int64 // finished without an error
	Failed        int64
	Cancelled     int64
	Losses        int64  // how often a closure was lost with its worker
	Mark          int64  // all closures with lower numbers have finished
	BytesSent     uint64 // message bytes to all servers, without the overhead of gRPC
	BytesReceived uint64
}

// Stats returns the current counters of the coordinator.
func (c *Coordinator) Stats() (stats CoordinatorStats, err error) {
	out := cdist.NewDist_coordinator_stats()
	defer cdist.DeleteDist_coordinator_stats(out)
	if err := c.with(func(native int64) error { return cdist.Dist_coordinator_query(native, out) }); err != nil {
		return stats, err
	}
	return CoordinatorStats{
		NumPS:         out.GetNum_ps(),
		NumWorkers:    out.GetNum_workers(),
		WorkersUp:     out.GetWorkers_up(),
		Queued:        out.GetQueued(),
		InFlight:      out.GetIn_flight(),
		Scheduled:     out.GetScheduled(),
		Completed:     out.GetCompleted(),
		Failed:        out.GetFailed(),
		Cancelled:     out.GetCancelled(),
		Losses:        out.GetLosses(),
		Mark:          out.GetMark(),
		BytesSent:     out.GetBytes_sent(),
		BytesReceived: out.GetBytes_received(),
	}, nil
}

// WriteTrace returns the latest 16,384 closures as a trace in Chrome's trace-event format (JSON), for
// Perfetto. Each worker has a row, on which a slice is the time from sending a closure until it finished.
func (c *Coordinator) WriteTrace() (text string, err error) {
	err = c.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Write_coordinator_trace(native) })
		return err
	})
	return text, err
}
