// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"runtime"
	"sync"

	"libdist.example/dist/internal/cdist"
)

// onGoroutines runs each replica on a goroutine that libdist regards as a host thread.
func (r *run) onGoroutines() error {
	// Two runs' goroutines would enter each other's run; the native threads know which run they serve.
	if !r.strategy.hosts.TryLock() {
		return newError(ErrFailedPrecondition,
			"a run is under way: a strategy with Goroutines does one at a time, and none inside a replica")
	}
	defer r.strategy.hosts.Unlock()
	defer r.watch()()
	results := make([]error, len(r.failed))
	var all sync.WaitGroup
	for i := range r.failed {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r.onThisGoroutine(r.first+i, &results[i])
		}()
	}
	all.Wait()
	for _, err := range results { // every replica gets the run's status, except one that Shutdown kept out
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) onThisGoroutine(id int, result *error) {
	var replica int64
	if err := fromNative(cdist.Dist_replica_enter(r.native, id, &replica)); err != nil {
		*result = err
		return
	}
	status := 0
	over := false
	defer func() {
		if !over { // fn called runtime.Goexit, which still runs this
			status = r.fail(id, errGoexit)
		}
		*result = fromNative(cdist.Dist_replica_leave(replica, status))
	}()
	status = r.call(replica, r.fn)
	over = true
}

// runValuesOnGoroutines is RunValues for a strategy whose replicas are goroutines. It does in Go what libdist
// otherwise does with arguments and results.
func (s *Strategy) runValuesOnGoroutines(ctx context.Context, fn ValuesFunc, args *Value, options *RunOptions) (*Value,
	error) {
	if options.Kwargs != nil && options.Kwargs.Kind() != DictValue {
		return nil, newError(ErrInvalidArgument, "Kwargs is no dictionary: NewDict makes one of named arguments")
	}
	var all Closer
	defer all.Close()
	positional, err := s.componentsOf(args, &all)
	if err != nil {
		return nil, err
	}
	named, err := s.componentsOf(options.Kwargs, &all)
	if err != nil {
		return nil, err
	}
	if options.Timeout > 0 {
		bounded, cancel := context.WithTimeout(contextOr(ctx), options.Timeout)
		defer cancel()
		ctx = bounded
	}
	results := make([]*Value, s.numLocal())
	if err := s.Run(ctx, func(r *Replica) error {
		mine := r.place
		given, kwargs := positional[mine].endsItems(), named[mine].endsItems()
		defer given.Close()
		defer kwargs.Close()
		result, err := fn(r, given, kwargs)
		if err != nil {
			result.Close()
			return err
		}
		if result != nil { // retained, so that the program may close it later
			native, err := result.handOver()
			results[mine] = ownValue(native)
			return err
		}
		return nil
	}); err != nil {
		for _, result := range results {
			result.Close()
		}
		return nil, err
	}
	return s.merged(results)
}

// componentsOf returns the component of a value for each replica; nil components for nil.
func (s *Strategy) componentsOf(v *Value, all *Closer) ([]*Value, error) {
	components := make([]*Value, s.numLocal())
	if v == nil {
		return components, nil
	}
	results, err := s.LocalResults(v)
	if err != nil {
		return nil, err
	}
	defer results.Close()
	for i := range components {
		// One value for all replicas if no part of it is per-replica.
		components[i] = Keep(all, results.Item(min(i, results.Len()-1)))
	}
	return components, nil
}

// merged merges the results of replicas, which it takes over, into one value. It returns nil if no replica
// returned a result.
func (s *Strategy) merged(results []*Value) (*Value, error) {
	same, none := true, true
	for _, result := range results {
		none = none && result == nil
		same = same && result != nil && result.Same(results[0])
	}
	if none {
		return nil, nil
	}
	if same || len(results) == 1 {
		for _, other := range results[1:] {
			other.Close()
		}
		return results[0], nil
	}
	next := 0 // it is called for one replica after another
	return s.NewPerReplicaFromFunction(func(int, int) (*Value, error) {
		next++
		return results[next-1], nil
	})
}

// Enter makes the calling goroutine replica id of a strategy with Threads [Goroutines], and locks it to its
// thread until [Replica.Leave]. The first replica that enters starts a run. Each replica enters a run once,
// and the run ends when all replicas have entered and left. [Strategy.Run] does all this with goroutines of
// its own.
func (s *Strategy) Enter(id int) (*Replica, error) {
	var u uses
	native, id := u.running(s), u.int32("id", id)
	if u.err != nil {
		u.end()
		return nil, u.err
	}
	runtime.LockOSThread()
	var replica int64
	if err := fromNative(cdist.Dist_replica_enter(native, id, &replica)); err != nil {
		runtime.UnlockOSThread()
		u.end()
		return nil, err
	}
	r := newReplica(replica, s, &failures{})
	r.host = true
	s.entered.enter(id)
	return r, nil // Leave ends the use of the strategy
}

// Leave ends this replica's part of a run that it entered with [Strategy.Enter]: successfully if err is nil,
// otherwise with err. Call it on the goroutine that entered. Leave waits until all replicas have left, and
// returns the error of the run on every replica. The replica that failed gets its own error back unchanged.
func (r *Replica) Leave(err error) error {
	if refused := r.check(); refused != nil {
		return refused
	}
	if r == nil || !r.host || cdist.Dist_get_replica() != r.native {
		return newError(ErrFailedPrecondition,
			"Leave is for a replica that entered by Strategy.Enter, on the goroutine that entered")
	}
	status := 0
	if err != nil {
		status = r.shared.fail(err)
	}
	result := r.shared.own(cdist.Dist_replica_leave(r.native, status))
	r.end()
	r.strategy.dropRun(nil)
	r.strategy.entered.leave(r.id)
	r.strategy.hasLeft()
	runtime.UnlockOSThread()
	return result
}

// watch cancels the run when ctx ends; the returned function stops the watch. Goroutines enter a run one by
// one, and entering takes no cancel object.
func (r *run) watch() (stop func()) {
	if r.ctx.Done() == nil {
		return func() {}
	}
	gone := make(chan struct{})
	unwatch := context.AfterFunc(r.ctx, func() {
		defer close(gone)
		r.cancel()
	})
	return func() {
		if !unwatch() {
			<-gone
		}
	}
}

// cancel cancels only this run. Before the first replica has entered, the run may still wait for its turn;
// when the last one has left, the next run may have started. In between, the lock prevents the last replica
// from leaving.
func (r *run) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered() && !r.left() {
		_ = cdist.Dist_strategy_cancel(r.native) // fails only for NULL
	}
}
