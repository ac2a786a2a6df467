// SPDX-License-Identifier: Apache-2.0

// Package dist runs one function on several replicas at the same time and lets them meet in collectives:
// tf.distribute's model for host CPUs, by libdist.
//
//	strategy, err := dist.New(dist.Options{Replicas: 4})
//	if err != nil {
//		return err
//	}
//	defer strategy.Close()
//	err = strategy.Run(ctx, func(r *dist.Replica) error {
//		gradient := []float32{1, 2, 3}
//		return dist.AllReduce(r, dist.Sum, gradient)
//	})
//
// The names are those of the C headers: dist_reduce_to is [Strategy.ReduceTo], dist_work_wait is [Work.Wait]. What
// they say of a function (which sums come in which order, who waits for whom, what is an error) holds here.
//
// Errors. What libdist says is an [*Error]: errors.Is compares its code with [ErrAborted] and its like,
// errors.As gives its fields. An error that the program's own function returns comes back from the call that the
// function was given to, as it was returned; a panic comes back as a [*PanicError]. The other replicas' collectives
// then end with ErrAborted and name the culprit: nobody hangs. Nothing in this package panics by itself, but for
// runtime.Goexit where [Strategy.Run] says so.
//
// Contexts. The end of a context ends what was begun with it, and nothing else. The error has the code
// [ErrDeadlineExceeded] where that was a deadline, else [ErrCancelled], and wraps the context's error and its cause.
//
// Memory. Slices are used where they lie, without a copy, until the call returns (of asynchronous work: until the
// work has ended). [Read] gives a copy of a value's tensor, [View] calls a function with it where libdist has it, and
// [Component] gives a variable's own memory, which is there until the variable is closed. Calls refuse a tensor whose
// memory is no longer there. A slice they cannot see: what is kept of a View after its function, or of a Component
// after Close, leads to memory that is somebody else's, or nobody's.
//
// Ends. Strategies, values, variables, datasets and the rest have a Close, and are an io.Closer: [Closer] has many. Closing
// twice is fine, closing what a call still uses waits for that call, and using what is closed is an error. What is
// forgotten is closed by the garbage collector, which is called when libdist's memory has grown: [SetMemorySlack].
//
// Handing over. Values that a function of the program receives (arguments of a replica, a batch in a loop's body) are
// closed when it is over, with the items that were taken out of them; values that it returns are taken over and closed
// too. [Value.Retain] keeps one.
package dist
