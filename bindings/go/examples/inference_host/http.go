// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"libdist.example/dist"
)

const (
	mostBody = 16384
	idle     = 60 * time.Second // a connection that sends no request or takes no answer for this long is closed
	sending  = 5 * time.Second  // time for sending the last answers on shutdown
)

// server is a net/http server on the loopback interface. One goroutine handles each request.
type server struct {
	native    http.Server
	listener  *net.TCPListener
	clients   *connections
	routes    map[string]func(*exchange) // keyed by method and path
	draining  atomic.Bool
	answering sync.RWMutex // each request whose body has been read holds a read lock until it is answered
}

// listen serves on a port; 0 selects a free one.
func listen(port int, routes map[string]func(*exchange)) (*server, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	clients := newConnections()
	s := &server{listener: listener, clients: clients, routes: routes}
	s.native = http.Server{Handler: s, ReadHeaderTimeout: idle, IdleTimeout: idle,
		ConnState: clients.changed, ConnContext: withConnection}
	go s.native.Serve(listener) // until drain() closes the listener
	return s, nil
}

func (s *server) address() string { return "http://" + s.listener.Addr().String() }

// drain closes the listener, so that new connections are refused. Answers on existing connections tell the client
// that the connection will be closed. They do so only when the listener is closed, so that a client that connects again
// is refused, too. http.Server.Shutdown would treat a connection as idle whose next request has just been read, so an
// accepted request could lose its answer.
func (s *server) drain() {
	s.native.Serve(closeListener(s.listener))
	s.draining.Store(true)
}

// stop waits until all answers have been sent and closes the connections, after a second in which clients can close
// theirs.
func (s *server) stop() {
	sent := make(chan struct{})
	go func() {
		s.answering.Lock() // new requests block here and are not answered
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(sending):
	}
	s.clients.end()
	s.native.Close()
}

// exchange is a request that has not been answered yet.
type exchange struct {
	*http.Request
	server  *server
	body    []byte
	writer  http.ResponseWriter
	control *http.ResponseController
}

func (s *server) ServeHTTP(writer http.ResponseWriter, r *http.Request) {
	e := &exchange{Request: r, server: s, writer: writer, control: http.NewResponseController(writer)}
	err := e.read()
	s.clients.busy(r)
	s.answering.RLock()
	defer s.answering.RUnlock()
	begin := s.routes[r.Method+" "+r.URL.Path]
	allowed := s.methods(r.URL.Path)
	switch {
	case err != nil:
		e.answer(nil, err)
	case begin != nil:
		begin(e)
	case len(allowed) > 0:
		writer.Header().Set("Allow", strings.Join(allowed, ", "))
		e.json(http.StatusMethodNotAllowed, failure{"the path does not have this method"})
	default:
		e.answer(nil, dist.Errorf(dist.ErrNotFound, "there is no such path"))
	}
}

// methods returns the methods of a path.
func (s *server) methods(path string) (methods []string) {
	for route := range s.routes {
		if method, of, _ := strings.Cut(route, " "); of == path {
			methods = append(methods, method)
		}
	}
	return methods
}

// read reads the body. It discards the excess of a body that is too long, so that the connection can be
// reused.
func (e *exchange) read() (err error) {
	e.control.SetReadDeadline(time.Now().Add(idle))
	defer e.control.SetReadDeadline(time.Time{}) // from here on, only a disconnect is detected
	var more int64
	if e.body, err = io.ReadAll(io.LimitReader(e.Body, mostBody)); err == nil {
		more, err = io.Copy(io.Discard, e.Body)
	}
	if err != nil {
		return dist.Errorf(dist.ErrInvalidArgument, "the body did not come: %v", err)
	}
	if more > 0 {
		return dist.Errorf(dist.ErrInvalidArgument, "the body is too long: at most %d bytes", mostBody)
	}
	return nil
}

// number parses a request header or else a query parameter as an integer. It returns 0 if neither exists.
func (e *exchange) number(name string, least, most int, err *error) (number int) {
	said := e.Header.Get(name)
	if said == "" {
		query := e.URL.Query()
		if said = query.Get(name); !query.Has(name) {
			return 0
		}
	}
	number, wrong := strconv.Atoi(said)
	if *err == nil && (wrong != nil || number < least || number > most) {
		*err = dist.Errorf(dist.ErrInvalidArgument, "%s is not a whole number from %d to %d", name, least, most)
	}
	return number
}

// codeOf returns the HTTP status code for an error.
func codeOf(err error) int {
	for code, errs := range map[int][]error{
		http.StatusBadRequest:         {dist.ErrInvalidArgument, dist.ErrOutOfRange, dist.ErrDataLoss},
		http.StatusNotFound:           {dist.ErrNotFound},
		http.StatusServiceUnavailable: {dist.ErrResourceExhausted, dist.ErrUnavailable, dist.ErrCancelled},
		http.StatusGatewayTimeout:     {dist.ErrDeadlineExceeded},
	} {
		for _, one := range errs {
			if errors.Is(err, one) {
				return code
			}
		}
	}
	return http.StatusInternalServerError
}

// answer sends content or the error as JSON. Call it once per request. It returns false if the client has
// disconnected.
func (e *exchange) answer(content any, err error) (sent bool) {
	code := http.StatusOK
	if err != nil {
		code, content = codeOf(err), failure{err.Error()}
	}
	return e.json(code, content)
}

func (e *exchange) json(code int, content any) (sent bool) {
	text, err := json.Marshal(content)
	if err != nil { // the vector has a number that JSON cannot represent
		code, text = http.StatusInternalServerError, []byte(`{"error": "the answer is no JSON"}`)
	}
	return e.send(code, "application/json", append(text, '\n'))
}

// metrics sends text for Prometheus, followed by one metric of this program.
func (e *exchange) metrics(text string, err error) {
	if err != nil {
		e.answer(nil, err)
		return
	}
	text += fmt.Sprintf("# TYPE go_goroutines gauge\ngo_goroutines %d\n", runtime.NumGoroutine())
	e.send(http.StatusOK, "text/plain; version=0.0.4", []byte(text))
}

func (e *exchange) send(code int, kind string, text []byte) (sent bool) {
	there := e.Context().Err() == nil // the client may disconnect once it has the answer
	e.control.SetWriteDeadline(time.Now().Add(idle))
	e.writer.Header().Set("Content-Type", kind)
	e.writer.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if e.server.draining.Load() {
		e.writer.Header().Set("Connection", "close")
	}
	e.writer.WriteHeader(code)
	_, err := e.writer.Write(text)
	if err == nil {
		err = e.control.Flush()
	}
	return err == nil && there
}
