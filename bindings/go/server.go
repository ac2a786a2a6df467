// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync/atomic"
	"time"

	"libdist.example/dist/internal/cdist"
)

// ClosureFunc is a function that workers run. arguments is what was scheduled with it, a value of kind NoneValue where that
// was nil; it ends with the call, and so does the closure: Retain what is kept. The result is taken over; nil is nothing.
// With an error, or a panic, nothing changes on any parameter server, and the coordinator hears its code and its text.
// Values are made with GetStrategy.
type ClosureFunc = func(closure *Closure, arguments *Value) (*Value, error)

// ServerUpdateFunc is how a parameter server changes variables that lie there alike, whose elements it writes; of a divided
// variable it is called for each part. arguments is what was given with the update: of a divided variable, tensors in it that
// have the variable's shape are the rows of this part. All of it ends with the call. With an error, or a panic, nothing has
// changed. One call at a time is made, on any thread.
type ServerUpdateFunc = func(variables []RawTensor, arguments *Value) error

// ServerOptions are the rare choices of NewServer and NewLocalServer.
type ServerOptions struct {
	NumThreads      int           // closures that a worker runs at a time; 0: 1
	BindAddress     string        // where it listens; "": DIST_BIND_ADDRESS, else the task's address in the cluster
	StartTimeout    time.Duration // how long Join waits for a coordinator that has not come; 0: 600 s; NoTimeout: no limit
	MaxMessageBytes int64         // of one message, and so of one part of a variable; 0: 1 GiB
}

// Server is a task that a Coordinator gives work to, as tf.distribute.Server is: of job "ps", it keeps variables; of job
// "worker", it runs closures. See libdist's headers, server.h, for what it reads of the environment, and for the rules.
//
//	server, err := dist.NewServer(nil, "", dist.TaskUnset, nil) // as TF_CONFIG says
//	...
//	err = server.Register("train", train)
//	err = server.Start()
//	err = server.Join(ctx) // until the coordinator says that it is over
//	err = server.Close()
type Server struct {
	object
	serves atomic.Bool
}

// NewServer makes the server of a task, which listens from Start on. With port 0 the system chooses one. A nil cluster, ""
// and TaskUnset are as TF_CONFIG says. options may be nil. One that was started goes on until Close, also where the program
// forgets it.
func NewServer(cluster *ClusterSpec, job string, index int, options *ServerOptions) (*Server, error) {
	var u uses
	defer u.end()
	spec, job, index := u.spec(cluster), u.text(job), u.taskID(index)
	return u.newServer(options, func(options cdist.Dist_server_options, out *int64) error {
		return cdist.Dist_server_create(spec, job, index, options, out)
	})
}

// NewLocalServer makes a server for trying things out: at 127.0.0.1, on a port that the system chooses at Start. A
// coordinator may have it for any worker or parameter server of its cluster. options may be nil.
func NewLocalServer(options *ServerOptions) (*Server, error) {
	var u uses
	defer u.end()
	return u.newServer(options, cdist.Dist_server_create_local)
}

func (u *uses) newServer(options *ServerOptions,
	create func(options cdist.Dist_server_options, out *int64) error) (*Server, error) {
	native := cdist.NewDist_server_options()
	defer cdist.DeleteDist_server_options(native)
	native.Count_memory()
	if options != nil {
		native.SetNum_threads(u.int32("ServerOptions.NumThreads", options.NumThreads))
		if options.BindAddress != "" {
			native.SetBind_address(u.text(options.BindAddress))
		}
		native.SetStart_timeout_ns(int64(options.StartTimeout))
		native.SetMax_message_bytes(options.MaxMessageBytes)
	}
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := create(native, &out); err != nil {
		return nil, fromNative(err)
	}
	s := &Server{}
	s.open(out, func(native int64) { _ = cdist.Dist_server_destroy(native) }, nil)
	return s, nil
}

func (u *uses) server(s *Server) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "server")
}

// closureCall is what a closure's token stands for.
type closureCall struct{ fn ClosureFunc }

// serverUpdateCall is what an update function's token stands for.
type serverUpdateCall struct{ fn ServerUpdateFunc }

// Register offers a closure under a name of up to 255 bytes, before Start. With NumThreads it is called on several threads
// at a time.
func (s *Server) Register(name string, fn ClosureFunc) error {
	return s.register(name, registerIf(fn != nil, &closureCall{fn}), cdist.Dist_server_register)
}

// RegisterUpdate is Register of a function by which a parameter server changes variables: Closure.Update and
// Coordinator.Update name it.
func (s *Server) RegisterUpdate(name string, fn ServerUpdateFunc) error {
	return s.register(name, registerIf(fn != nil, &serverUpdateCall{fn}), cdist.Dist_server_register_update)
}

// register offers a function's token, until libdist releases it.
func (s *Server) register(name string, token int64, offer func(native int64, name string, token int64) error) error {
	var u uses
	defer u.end()
	native := u.server(s)
	u.text(name)
	err := u.err
	if err == nil {
		err = offer(native, name, token)
	}
	if err != nil {
		forget(token)
	}
	return fromNative(err)
}

// Closure is called by libdist for a coordinator.
func (callbacks) Closure(token, native, arguments int64) int64 {
	c := registered[*closureCall](token)
	return answer(arguments, func(given *Value) (*Value, error) {
		closure := newClosure(native)
		defer closure.end()
		return c.fn(closure, given)
	})
}

// Update_variables is called by libdist for a coordinator, or for a closure that has ended well.
func (callbacks) Update_variables(token, variables, n, arguments int64) int {
	c := registered[*serverUpdateCall](token)
	if err := onNative(-1, func() error {
		return borrow(func(owner *object) error {
			given := lend(arguments)
			defer given.Close()
			return c.fn(tensorsAt(variables, n, owner), given)
		})
	}); err != nil {
		return tell(err)
	}
	return 0
}

// Start listens, and makes the threads that closures run on.
func (s *Server) Start() error {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err != nil {
		return u.err
	}
	err := cdist.Dist_server_start(native)
	if err == nil {
		s.serves.Store(true)
		started.Store(s, nil)
	}
	return fromNative(err)
}

// Target is where coordinators find the server: "grpc://host:port", with the port that the system has chosen; "" for nil and
// for a closed one.
func (s *Server) Target() string {
	var u uses
	defer u.end()
	return cdist.Dist_server_target(u.server(s))
}

// Join waits for the server's end: that of its coordinator, Stop or Close. ErrUnavailable: the coordinator has not been heard
// of for two leases. ErrDeadlineExceeded: none has come within StartTimeout, or ctx had a deadline. The end of ctx ends the
// wait alone: the server listens until Close.
func (s *Server) Join(ctx context.Context) error {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err != nil {
		return u.err
	}
	var waiting *callers // Close ends it by Stop
	return waiting.wait(ctx, func(call *timedCall) error {
		return cdist.Dist_server_join(native, call.timeout(-1), call.cancel.handle())
	})
}

// WriteTrace is what the server has done, as a trace: JSON of Chrome's trace-event format, for Perfetto. A worker has a row for
// each thread, with closures and in them what they ask of parameter servers; a parameter server has one, with the calls to it.
// Traces of a job's servers and of its coordinator can be joined.
func (s *Server) WriteTrace() (string, error) {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err != nil {
		return "", u.err
	}
	return written(func(t cdist.Text) error { return t.Write_server_trace(native) })
}

// Stop ends Join, which returns nil.
func (s *Server) Stop() error {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err == nil {
		cdist.Dist_server_stop(native)
	}
	return u.err
}

// Close ends the server: its coordinator loses it, Join returns, and the contexts of closures that run are over; it waits
// until those have returned. Inside one of the server's closures it fails with ErrFailedPrecondition, and the server goes on.
// Closing twice, and nil, are fine.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	if err := s.leave(); err != nil {
		return err
	}
	ended, err := s.endBy(cdist.Dist_server_destroy)
	if ended {
		started.Delete(s)
	}
	return err
}

// leave lets calls of Join return, unless this is one of the server's closures.
func (s *Server) leave() error {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err != nil {
		return nil // it is closed
	}
	probe := fromNative(cdist.Dist_server_join(native, 0, 0))
	if report, failed := probe.(*Error); failed && report.Code == ErrFailedPrecondition && s.serves.Load() {
		return fromNative(cdist.Dist_server_destroy(native)) // which refuses for the same reason, in its own words
	}
	cdist.Dist_server_stop(native)
	return nil
}
