// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"libdist.example/dist/internal/cdist"
)

// PartitionFunc says into how many parts each dimension of a variable is divided, as FixedShards and its like give it: the
// first at least 1 and the others 1. spec has the DType and the Shape alone. It is not called for scalars, and must not call
// the coordinator.
type PartitionFunc = func(spec RawTensor) ([]int, error)

// CoordinatorOptions are the rare choices of Strategy.NewCoordinator.
type CoordinatorOptions struct {
	MaxQueued         int           // closures that have no end; beyond it Schedule waits; 0: 262,144
	ClosuresPerWorker int           // that a worker has at a time; 0: 1
	MaxLosses         int           // how often one closure may be lost with its worker; 0: 16
	Timeout           time.Duration // of calls whose context has no deadline; 0: the strategy's; NoTimeout: no limit
	MaxMessageBytes   int64         // of one message; 0: 1 GiB
	Partitioner       PartitionFunc // of variables that do not say it; nil: they stay whole
}

// Coordinator keeps variables on the parameter servers of a job, and gives closures to its workers, as TensorFlow's
// ClusterCoordinator does with a ParameterServerStrategy. Closures run side by side and wait for nobody: training is
// asynchronous. See libdist's headers, coordinator.h, for what becomes of servers that are lost. Its methods may be called from
// several goroutines.
//
//	strategy, err := dist.New(dist.Options{Kind: dist.ParameterServer}) // TF_CONFIG says which servers there are
//	coordinator, err := strategy.NewCoordinator(nil)
//	defer coordinator.Close() // the servers end too
//	err = coordinator.CreateVariable("w", dist.Of(zeros), nil)
//	for range 1000 {
//		_, err = coordinator.Schedule(ctx, "train", batch)
//	}
//	err = coordinator.Join(ctx)
//	values, err := coordinator.Read("w")
type Coordinator struct {
	object
	shared  *sharedCoordinator
	waiting callers
}

// sharedCoordinator is the one coordinator that a strategy has, and whose partitioner it calls. Whoever asks for it holds it.
type sharedCoordinator struct {
	mu          sync.Mutex
	holders     int
	partitioner *partitionCall // nil: none
	token       int64          // of partitioner
}

type partitionCall struct {
	failures
	fn     PartitionFunc
	inside atomic.Int32
}

// NewCoordinator makes the coordinator of a strategy of Kind ParameterServer, whose ClusterResolver says which servers there
// are. It waits for nobody. A strategy has one: where there is one already, that is what comes, its options are not read, and
// it ends when everybody who has it has closed it. Close it before the strategy. options may be nil.
func (s *Strategy) NewCoordinator(options *CoordinatorOptions) (*Coordinator, error) {
	var u uses
	defer u.end()
	strategy := u.strategy(s)
	native := cdist.NewDist_coordinator_options()
	defer cdist.DeleteDist_coordinator_options(native)
	var partitioner *partitionCall
	if options != nil {
		native.SetMax_queued(u.int32("CoordinatorOptions.MaxQueued", options.MaxQueued))
		native.SetClosures_per_worker(u.int32("CoordinatorOptions.ClosuresPerWorker", options.ClosuresPerWorker))
		native.SetMax_losses(u.int32("CoordinatorOptions.MaxLosses", options.MaxLosses))
		native.SetTimeout_ns(int64(options.Timeout))
		native.SetMax_message_bytes(options.MaxMessageBytes)
		if options.Partitioner != nil {
			partitioner = &partitionCall{fn: options.Partitioner}
		}
	}
	if u.err != nil {
		return nil, u.err
	}
	if s == nil {
		var out int64
		return nil, fromNative(cdist.Dist_coordinator_create(0, native, &out))
	}
	out, err := s.coordinator.hold(strategy, native, partitioner)
	if err != nil {
		return nil, err
	}
	shared := s.coordinator
	c := &Coordinator{shared: shared}
	c.open(out, shared.drop, s)
	return c, nil
}

// hold makes the coordinator, or gives the one that there is.
func (s *sharedCoordinator) hold(strategy int64, options cdist.Dist_coordinator_options,
	partitioner *partitionCall) (native int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var token int64
	if partitioner != nil && s.holders == 0 {
		token = register(partitioner)
		options.Set_partitioner(token)
	}
	if err := cdist.Dist_coordinator_create(strategy, options, &native); err != nil {
		forget(token)
		return 0, fromNative(err)
	}
	if s.holders == 0 {
		s.partitioner, s.token = partitioner, token
	}
	s.holders++
	return native, nil
}

// drop ends it with its last holder.
func (s *sharedCoordinator) drop(native int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cdist.Dist_coordinator_destroy(native)
	if s.holders--; s.holders == 0 {
		forget(s.token)
		s.partitioner, s.token = nil, 0
	}
}

// partitioning is the call that a partitioner has; nil where there is none.
func (s *sharedCoordinator) partitioning() *partitionCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partitioner
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

// with calls something of the coordinator's handle.
func (c *Coordinator) with(call func(native int64) error) error {
	var u uses
	defer u.end()
	native := u.coordinator(c)
	if u.err != nil {
		return u.err
	}
	return fromNative(call(native))
}

// Close ends the coordinator, where nobody else has it: closures that have no end are ErrCancelled, and the servers are told
// to end. Schedule and Join that wait are ErrCancelled; other calls are waited for. Remote values stay readable. In a
// partitioner it fails with ErrFailedPrecondition. Closing twice, and nil, are fine.
func (c *Coordinator) Close() error {
	if c == nil {
		return nil
	}
	if p := c.shared.partitioning(); p != nil && p.inside.Load() > 0 {
		return newError(ErrFailedPrecondition, "the coordinator's partitioner runs: close the coordinator afterwards")
	}
	c.waiting.end("the coordinator is closed")
	_, err := c.endBy(func(native int64) error {
		c.shared.drop(native)
		return nil
	})
	return err
}

// Schedule has a worker run the closure that it has registered under a name. arguments, nil being nothing, are held until it
// has ended: their elements must stay as they are. It waits while there are MaxQueued closures that have no end; the end of
// ctx ends that wait alone. What an earlier closure has failed with comes out of Schedule, Join or Done, once, and nothing is
// scheduled then. The remote value has what this one comes to; who does not want it may forget it.
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

// wait does a call that ends with its context, and with the coordinator.
func (c *Coordinator) wait(ctx context.Context, do func(call *timedCall) error) error {
	if c == nil {
		return (*callers)(nil).wait(ctx, do)
	}
	return c.waiting.wait(ctx, do)
}

// Join waits until all closures have ended; the end of ctx ends the wait alone.
func (c *Coordinator) Join(ctx context.Context) error {
	return c.with(func(native int64) error {
		return c.wait(ctx, func(call *timedCall) error {
			return cdist.Dist_coordinator_join(native, call.timeout(0), call.cancel.handle())
		})
	})
}

// Done says whether all closures have ended.
func (c *Coordinator) Done() (bool, error) {
	var out int32
	err := c.with(func(native int64) error { return cdist.Dist_coordinator_done(native, &out) })
	return out != 0, err
}

// CreatePerWorker has each worker run the closure `function`, once and before any further one, and keep its result under a
// name for its closures: Closure.PerWorker. So each has a dataset or a buffer of its own. A worker that returns runs it again.
// The result is not sent, so that it may be anything: Strategy.NewObject makes a value of a Go object. It waits until the
// workers that are there have it; what the function fails with is the error.
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

// CoordinatorStats are what a coordinator does, in numbers.
type CoordinatorStats struct {
	NumPS         int
	NumWorkers    int
	WorkersUp     int   // that have work, or may have it
	Queued        int64 // closures that no worker has
	InFlight      int64 // that one has
	Scheduled     int64 // in all
	Completed     int64 // that ended well
	Failed        int64
	Cancelled     int64
	Losses        int64  // how often a closure came back from a worker
	Mark          int64  // all closures below have ended
	BytesSent     uint64 // to all servers: messages, without what gRPC adds
	BytesReceived uint64
}

// Stats is what the coordinator does now.
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

// WriteTrace is the latest 16,384 closures as a trace: JSON of Chrome's trace-event format, for Perfetto, with a row for each
// worker, on which a slice is the time from when a closure was sent until its end.
func (c *Coordinator) WriteTrace() (text string, err error) {
	err = c.with(func(native int64) error {
		text, err = written(func(t cdist.Text) error { return t.Write_coordinator_trace(native) })
		return err
	})
	return text, err
}
