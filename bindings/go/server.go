// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"sync/atomic"

	"libdist.example/dist/internal/cdist"
)

// ClosureFunc is a function that workers run for a [Coordinator]. arguments is the value that was scheduled
// with it; it is of kind [NoneValue] if that was nil. Both arguments are valid only during the call; call
// [Value.Retain] to keep a value. libdist takes ownership of the result; nil means no result. If the function
// returns an error or panics, no parameter server changes anything, and the coordinator receives the code and
// the text. Use [CurrentStrategy] to create values.
type ClosureFunc = func(closure *Closure, arguments *Value) (*Value, error)

// ServerUpdateFunc changes variables on a parameter server by writing their elements. The variables have the
// same parts on the same servers; for divided variables, the function is called for each part. arguments is
// the value that was passed with the update; tensors in it that have the shape of the divided variable are
// replaced by the rows of this part. Everything is valid only during the call. If the function returns an
// error or panics, nothing changes on this server. libdist makes one call at a time, on any thread.
type ServerUpdateFunc = func(variables []RawTensor, arguments *Value) error

// A Server is a task to which a [Coordinator] sends work, like tf.distribute.Server. A task of job "ps" keeps
// variables; a task of job "worker" runs closures.
//
//	server, err := dist.NewServer(nil, "", dist.TaskUnset, nil) // from TF_CONFIG
//	...
//	err = server.Register("train", train)
//	err = server.Start()
//	err = server.Join(ctx) // until the coordinator ends the job
//	err = server.Close()
//
// Servers and coordinators communicate over gRPC. They read DIST_JOB_SECRET, DIST_TLS_CA,
// DIST_TLS_CERTIFICATE, DIST_TLS_KEY, DIST_PLAINTEXT, DIST_BIND_ADDRESS, DIST_LEASE_SECONDS and
// DIST_MODULE_FOLDER from the environment. All tasks need the same secret and the same lease. A server has
// one coordinator in its lifetime.
type Server struct {
	object
	serves atomic.Bool
}

// NewServer returns the server of a task. It does not listen before [Server.Start]. With port 0, the system
// chooses a port. A nil cluster, "" and [TaskUnset] select the task in TF_CONFIG. options may be nil. The
// caller must close the server; a started server runs until Close, even if the program no longer refers to
// it.
func NewServer(cluster *ClusterSpec, job string, index int, options *ServerOptions) (*Server, error) {
	var u uses
	defer u.end()
	spec, job, index := u.spec(cluster), u.text(job), u.taskID(index)
	return u.newServer(options, func(options cdist.Dist_server_options, out *int64) error {
		return cdist.Dist_server_create(spec, job, index, options, out)
	})
}

// NewLocalServer returns a server for experiments, on 127.0.0.1 and a port that the system chooses at Start.
// A coordinator can use it as any worker or parameter server of its cluster. options may be nil. The caller
// must close the server.
func NewLocalServer(options *ServerOptions) (*Server, error) {
	var u uses
	defer u.end()
	return u.newServer(options, cdist.Dist_server_create_local)
}

func (u *uses) newServer(options *ServerOptions,
	create func(options cdist.Dist_server_options, out *int64) error) (*Server, error) {
	if options == nil {
		options = &ServerOptions{}
	}
	native := options.native(u)
	defer cdist.DeleteDist_server_options(native)
	native.Count_memory()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := create(native, &out); err != nil {
		return nil, fromNative(err)
	}
	s := &Server{}
	s.given = u.keep()
	s.open(out, func(native int64) { _ = cdist.Dist_server_destroy(native) }, nil)
	return s, nil
}

func (u *uses) server(s *Server) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "server")
}

// closureCall is the object behind the token of a closure.
type closureCall struct{ fn ClosureFunc }

// serverUpdateCall is the object behind the token of an update function.
type serverUpdateCall struct{ fn ServerUpdateFunc }

// Register offers a closure under a name of up to 255 bytes. Call it before Start. If NumThreads is above 1,
// the function is called on several threads at the same time.
func (s *Server) Register(name string, fn ClosureFunc) error {
	return s.register(name, registerIf(fn != nil, &closureCall{fn}), cdist.Dist_server_register)
}

// RegisterUpdate offers a function with which a parameter server changes variables, for [Closure.Update] and
// [Coordinator.Update]. Call it before Start.
func (s *Server) RegisterUpdate(name string, fn ServerUpdateFunc) error {
	return s.register(name, registerIf(fn != nil, &serverUpdateCall{fn}), cdist.Dist_server_register_update)
}

// register offers the token of a function, until libdist releases it.
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

// Update_variables is called by libdist for a coordinator, or for a closure that has succeeded.
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

// Start creates the threads that run closures, and listens.
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

// Target returns the address for coordinators, "grpc://host:port", with the port that the system has chosen;
// "" for a nil or closed server.
func (s *Server) Target() string {
	var u uses
	defer u.end()
	return cdist.Dist_server_target(u.server(s))
}

// Join waits until the coordinator ends the job, or until Stop or Close is called. It fails with
// [ErrUnavailable] if the coordinator has been silent for two leases, and with [ErrDeadlineExceeded] if no
// coordinator connected within StartTimeout or ctx reached its deadline. The end of ctx cancels only the
// wait: the server listens until Close.
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

// WriteTrace returns a trace of what the server has done, in Chrome's trace-event format (JSON), for
// Perfetto. A worker has one row per thread, with a slice for each closure that contains slices for its calls
// to parameter servers. A parameter server has one row, with a slice for each call. The traces of a job's
// servers and coordinator can be merged.
func (s *Server) WriteTrace() (string, error) {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err != nil {
		return "", u.err
	}
	return written(func(t cdist.Text) error { return t.Write_server_trace(native) })
}

// Stop makes [Server.Join] return nil.
func (s *Server) Stop() error {
	var u uses
	defer u.end()
	native := u.server(s)
	if u.err == nil {
		cdist.Dist_server_stop(native)
	}
	return u.err
}

// Close stops the server: its coordinator loses it, Join returns, and the contexts of running closures end.
// Close waits until those closures have returned. Inside one of the server's functions, it fails with
// [ErrFailedPrecondition], and the server continues. Closing a nil or closed server does nothing.
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
