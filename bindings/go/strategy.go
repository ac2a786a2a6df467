// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"flag"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"libdist.example/dist/internal/cdist"
)

// A Strategy holds R replicas and the threads that run them. Several goroutines may call its methods at the
// same time.
type Strategy struct {
	object
	// Guarded by mu, like the users, of which runs are a part: runs, requests, and replicas that came by Enter. Close
	// refuses while there are any, and Shutdown ends them.
	runs   int
	inside []*run // runs whose functions have not all returned
	_      [64]byte

	// Replicas read the rest while runs begin and end.
	replicas int // of all workers, before the first Reform
	local    int // of this worker
	first    int // the id of the first of these, as replicas
	threads  Threads
	hop      bool
	borrowed bool
	groups   atomic.Bool // its groups are there until they are closed

	functions   *hostCall // of Options.Functions
	crossDevice *hostCall // of Options.CrossDevice

	resolverHosts []*hostAnswer // of Options.ClusterResolver

	coordinator *sharedCoordinator
	held        *holdings

	functionsRun object   // calls in which functions of the program run: Close fails, since one of them may have called it
	entered      insiders // replicas without a run whose functions have not returned

	replica *Replica // of a default strategy, outside of runs

	hosts sync.Mutex // with Goroutines: the one Run that is under way
}

// holdings are the objects that end with a strategy.
type holdings struct {
	mu        sync.Mutex
	tokens    []int64
	calls     *hostCall // of Options.CrossDevice
	variables []int64   // of the strategy's own, those that were looked into
	instances *instances

	spare atomic.Pointer[run] // for the next run; nil: none
	over  atomic.Bool
}

// keepRun keeps a run for the next one, unless there is another or the strategy has ended.
func (h *holdings) keepRun(r *run) {
	if !h.spare.CompareAndSwap(nil, r) {
		forget(r.token)
	}
	if h.over.Load() {
		h.endSpare()
	}
}

func (h *holdings) endSpare() {
	if r := h.spare.Swap(nil); r != nil {
		forget(r.token)
	}
}

// add has a token end with the strategy.
func (h *holdings) add(token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = append(h.tokens, token)
}

// ends records that a variable, for which the program has a view, ends with the strategy.
func (s *Strategy) ends(variable int64) {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	if !slices.Contains(s.held.variables, variable) {
		s.held.variables = append(s.held.variables, variable)
	}
}

// end releases all of them. window handles the variables for which the program has views.
func (h *holdings) end(window func(variable int64)) {
	h.over.Store(true)
	h.endSpare()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, variable := range h.variables {
		window(variable)
	}
	h.variables = nil
	for _, token := range h.tokens {
		forget(token)
	}
	h.tokens = nil
	h.calls.drop()
	h.calls = nil
	h.instances.end()
	h.instances = nil
}

// strategies maps handles to their *Strategy.
var strategies sync.Map // int64 to weak.Pointer[Strategy]

// New returns a new strategy and creates its threads, which sleep until the first run. The caller must close
// the strategy.
func New(options Options) (*Strategy, error) {
	var u uses
	defer u.end()
	native := options.native(&u)
	defer cdist.DeleteDist_strategy_options(native)
	native.Count_memory()
	native.SetLate_destroys(1) // cleanups destroy objects at any time
	if u.err != nil {
		return nil, u.err
	}
	strategy := &Strategy{threads: options.Threads, hop: hops(options.HopGoroutine), held: &holdings{},
		coordinator: &sharedCoordinator{}}
	if options.CrossDevice != nil {
		strategy.crossDevice = options.CrossDevice.call
		strategy.held.calls = options.CrossDevice.call.take()
	}
	if options.ClusterResolver != nil {
		strategy.resolverHosts = options.ClusterResolver.hosts
	}
	var handle int64
	if err := cdist.Dist_strategy_create(native, &handle); err != nil {
		strategy.held.end(shutWindow)
		return nil, fromNative(err)
	}
	if kept := u.keep(); kept != nil {
		strategy.held.tokens = kept.tokens
		if options.Functions != nil {
			strategy.functions = &hostCall{attached: kept}
		}
	}
	strategy.count(handle)
	// A net for the forgotten Close; it cannot run while a call holds the strategy.
	strategy.native = handle
	strategy.groups.Store(true)
	strategy.cleanup = runtime.AddCleanup(strategy, endForgotten, forgotten{handle, strategy.held})
	strategies.Store(handle, weak.Make(strategy))
	return strategy, nil
}

// hops evaluates Options.HopGoroutine.
func hops(choice Choice) bool {
	if choice == DefaultChoice {
		return flag.Lookup("test.v") != nil // which the test binaries of `go test` have
	}
	return choice != No
}

type forgotten struct {
	native int64
	held   *holdings
}

func endForgotten(s forgotten) {
	strategies.Delete(s.native)
	if cdist.Dist_strategy_destroy(s.native) == nil {
		s.held.end(orphan)
	}
}

// strategyOf returns the *Strategy of a handle: the one that New returned, or a borrowed one.
func strategyOf(native int64) *Strategy {
	if native == 0 {
		return nil
	}
	if known, ok := strategies.Load(native); ok {
		if s := known.(weak.Pointer[Strategy]).Value(); s != nil {
			return s
		}
	}
	s := &Strategy{borrowed: true, held: &holdings{}, coordinator: &sharedCoordinator{}}
	s.count(native)
	s.native = native
	strategies.Store(native, weak.Make(s)) // until a strategy that New makes is there
	return s
}

// orNil returns nil for a zero Strategy, which is like a nil one.
func (s *Strategy) orNil() *Strategy {
	if s == nil || s.held == nil {
		return nil
	}
	return s
}

// Close closes the strategy and ends its threads. It fails with [ErrFailedPrecondition], and leaves the
// strategy unchanged, if a run or another call that runs a callback is in progress, or if groups or works
// still exist. Close waits for other calls, which are short. Values, variables and datasets of the strategy
// stay readable. Closing a nil or closed strategy does nothing. [Strategy.Shutdown] also ends runs in
// progress.
func (s *Strategy) Close() error {
	if s = s.orNil(); s == nil {
		return nil
	}
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitable()
	for s.ending { // by another goroutine
		s.idle.Wait()
	}
	defer func() {
		s.ending = false
		s.idle.Broadcast()
	}()
	for !s.closed && !s.shut {
		if s.borrowed {
			return errBorrowed
		}
		if s.functionsRun.inUse() > 0 || s.runs > 0 {
			return newError(ErrFailedPrecondition,
				"a run or a request is under way: close the strategy after Run has returned, or Shutdown")
		}
		if s.users > 0 {
			s.ending = true
			s.idle.Wait()
			continue
		}
		if err := s.destroyNative(); err != nil {
			return fromNative(err)
		}
		s.forgetNative()
		s.held.end(shutWindow)
	}
	return nil
}

// destroyNative destroys the strategy. s.mu is held, except while functions of the program destroy the states
// of instances.
func (s *Strategy) destroyNative() error {
	if !s.held.endsStates() {
		return cdist.Dist_strategy_destroy(s.native)
	}
	s.ending, s.shut = true, true
	s.mu.Unlock()
	err := cdist.Dist_strategy_destroy(s.native)
	s.mu.Lock()
	s.shut = false
	return err
}

var errBorrowed = newError(ErrFailedPrecondition, "a default strategy is its thread's and ends with it")

// forgetNative closes the strategy after its handle was destroyed.
func (s *Strategy) forgetNative() {
	s.closed = true
	s.cleanup.Stop()
	strategies.Delete(s.native)
}

// count queries the number of replicas, and which of them belong to this worker.
func (s *Strategy) count(native int64) {
	s.replicas = cdist.Dist_strategy_num_replicas(native)
	s.local = s.replicas
	if Kind(cdist.Dist_strategy_kind_of(native)) != MultiWorkerMirrored {
		return
	}
	s.local, s.first = localReplicas(native)
}

// localReplicas returns the number of this worker's replicas and the id of the first of them.
func localReplicas(native int64) (local, first int) {
	p := cdist.NewDist_strategy_properties()
	defer cdist.DeleteDist_strategy_properties(p)
	_ = cdist.Dist_strategy_query(native, p) // fails only for NULL
	return p.GetNum_local_replicas(), p.GetFirst_replica()
}

// firstReplica returns the id of this worker's first replica, which a Reform changes.
func (s *Strategy) firstReplica(native int64) int {
	if !s.hasPeers() {
		return s.first
	}
	_, first := localReplicas(native)
	return first
}

// hasPeers reports whether the cluster has other workers, even if all of them are lost.
func (s *Strategy) hasPeers() bool { return s != nil && s.local != s.replicas }

// numLocal returns the number of this worker's replicas; 0 for nil.
func (s *Strategy) numLocal() int {
	if s == nil {
		return 0
	}
	return s.local
}

// NumReplicas returns the number of replicas in sync, over all workers; 0 for nil.
func (s *Strategy) NumReplicas() int {
	if s == nil {
		return 0
	}
	if s.hasPeers() {
		var u uses
		defer u.end()
		if native := u.strategy(s); u.err == nil {
			return cdist.Dist_strategy_num_replicas(native)
		}
	}
	return s.replicas
}

// Kind returns the strategy's kind, which determines where values and variables are placed. It returns -1 for
// a nil or closed strategy.
func (s *Strategy) Kind() Kind {
	var u uses
	defer u.end()
	return Kind(cdist.Dist_strategy_kind_of(u.strategy(s)))
}

// Device returns the full name of a replica's device, such as "/job:localhost/replica:0/task:0/device:CPU:1".
func (s *Strategy) Device(replicaID int) (name string, err error) {
	var u uses
	defer u.end()
	native, replicaID := u.strategy(s), u.int32("replicaID", replicaID)
	if u.err != nil {
		return "", u.err
	}
	err = fromNative(cdist.Dist_strategy_device(native, replicaID, &name))
	return name, err
}

// ParameterDevice returns the full name of a device that holds variables: the single device of central
// storage, or else the device of the replica with the given index.
func (s *Strategy) ParameterDevice(index int) (name string, err error) {
	var u uses
	defer u.end()
	native, index := u.strategy(s), u.int32("index", index)
	if u.err != nil {
		return "", u.err
	}
	err = fromNative(cdist.Dist_strategy_parameter_device(native, index, &name))
	return name, err
}

// Cancel cancels the run in progress. Every replica that waits in a collective, now or later in that run,
// gets [ErrCancelled], and so does Run after the replica functions have returned. Calls outside runs that
// wait for other workers, such as Reduce or a step of a dataset, are cancelled too. To end such a call with a
// context, use context.AfterFunc(ctx, func() { strategy.Cancel() }). If nothing is in progress, Cancel does
// nothing.
func (s *Strategy) Cancel() error {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return u.err
	}
	return fromNative(cdist.Dist_strategy_cancel(native))
}
