// SPDX-License-Identifier: Apache-2.0

// Package dist runs one function on several replicas at the same time and gives these replicas collectives,
// such as [AllReduce]. Replicas are threads of the process, or of several processes. The package binds
// libdist, a C library that brings the programming model of TensorFlow's tf.distribute to host CPUs.
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
// A [Strategy] holds the replicas, and [Strategy.Run] calls a function once on each of them. A [Value] is
// data that is passed into runs and returned from them, a [Variable] is a tensor that outlives runs, and a
// [Dataset] splits batches over the replicas. Between runs, [Strategy.Submit] and [Batcher] use the same
// replicas to serve requests.
//
// # Errors
//
// Errors that libdist reports are of type [*Error]. Use [errors.Is] to compare them with a code such as
// [ErrAborted], and [errors.As] to read the fields of the report. If your own function returns an error, the
// call that received the function returns that error unchanged. If your function panics, the call returns a
// [*PanicError]. The collectives of the other replicas then fail with ErrAborted and name the replica that
// failed, so no replica hangs. This package does not panic, except if a callback calls [runtime.Goexit] in
// the cases that [Strategy.Run] describes.
//
// # Contexts
//
// When a context ends, it cancels only the calls that were started with it. Their error has the code
// [ErrDeadlineExceeded] if the context reached its deadline and [ErrCancelled] otherwise. It wraps the
// context's error and its cause.
//
// # Memory
//
// libdist uses slices in place, without copying them, until the call returns. Asynchronous work uses its
// slices until it completes. [Read] returns a copy of a value's tensor. [View] calls a function with the
// tensor in libdist's memory. [Component] returns the memory of a variable, which is valid until the variable
// is closed. Calls reject tensors whose memory is no longer valid. They cannot check plain slices: do not use
// a slice from View after its function has returned, or a slice from Component after Close.
//
// # Closing
//
// Strategies, values, variables, datasets and most other objects have a Close method and implement
// [io.Closer]; a [Closer] closes several of them together. It is safe to close an object twice. If a call
// still uses an object, libdist destroys it when that call returns. Using a closed object is an error. The
// garbage collector closes most objects that the program no longer refers to, and this package starts a
// collection when libdist's memory has grown; see [SetMemorySlack].
//
// # Ownership
//
// Values that your function receives, such as the arguments of a replica function or the batch in a loop
// body, are closed when the function returns or the loop body ends, together with all items taken from them.
// Values that your function returns are owned by libdist. To keep a value, call [Value.Retain].
package dist
