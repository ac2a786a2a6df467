// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	mostConnections = 4096 // or fewer: as many as the process may have descriptors, less those for other files
	otherFiles      = 64
	linger          = time.Second // on shutdown, time for clients to close their idle connections
)

// connections are the open connections of a server. A connection is idle while the host has no request from it:
// before and between requests, and while a request arrives.
type connections struct {
	lock   sync.Mutex
	fewer  sync.Cond
	open   map[net.Conn]*list.Element // nil if it is not idle
	idle   list.List                  // the connection without traffic for the longest time is at the front
	most   int
	ending bool
}

func newConnections() *connections {
	c := &connections{open: map[net.Conn]*list.Element{}, most: mostConnections}
	c.fewer.L = &c.lock
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		c.most = int(min(mostConnections, max(files.Cur, 2*otherFiles)-otherFiles))
	}
	return c
}

// changed is an http.Server.ConnState. If there are too many connections, the one that has been idle for the longest
// time is closed.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	switch state {
	case http.StateNew, http.StateActive, http.StateIdle:
		c.setIdle(conn)
		if oldest := c.idle.Front(); state == http.StateNew && len(c.open) > c.most && oldest.Value != conn {
			c.idle.Remove(oldest)
			c.open[oldest.Value.(net.Conn)] = nil
			oldest.Value.(net.Conn).Close()
		}
	case http.StateHijacked, http.StateClosed:
		c.setBusy(conn)
		delete(c.open, conn)
		c.fewer.Signal()
	}
}

// setIdle requires the lock. An idle connection becomes the newest one.
func (c *connections) setIdle(conn net.Conn) {
	if at := c.open[conn]; at != nil {
		c.idle.MoveToBack(at)
	} else {
		c.open[conn] = c.idle.PushBack(conn)
	}
	if c.ending {
		closeWrite(conn)
	}
}

// setBusy requires the lock.
func (c *connections) setBusy(conn net.Conn) {
	if at := c.open[conn]; at != nil {
		c.idle.Remove(at)
		c.open[conn] = nil
	}
}

type connectionKey struct{}

// withConnection is an http.Server.ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// busy is called when a request has been read.
func (c *connections) busy(r *http.Request) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.setBusy(r.Context().Value(connectionKey{}).(net.Conn))
}

// end lets the clients close their idle connections. They may be sending, and closing a connection would then reset it.
func (c *connections) end() {
	timer := time.AfterFunc(linger, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		clear(c.open)
		c.fewer.Signal()
	})
	defer timer.Stop()
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ending = true
	for at := c.idle.Front(); at != nil; at = at.Next() {
		closeWrite(at.Value.(net.Conn))
	}
	for len(c.open) > 0 {
		c.fewer.Wait()
	}
}

func closeWrite(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.CloseWrite()
	}
}

// arrived is a listener for connections that have arrived at another listener.
type arrived struct {
	net.Listener
	conns []net.Conn
}

func (a *arrived) Accept() (net.Conn, error) {
	if len(a.conns) == 0 {
		return nil, net.ErrClosed
	}
	conn := a.conns[0]
	a.conns = a.conns[1:]
	return conn, nil
}

func (a *arrived) Close() error { return nil }

// closeListener closes a listener and returns the connections that have arrived at it. Otherwise, they would be reset.
func closeListener(listener *net.TCPListener) *arrived {
	a := &arrived{Listener: listener}
	if raw, err := listener.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			for {
				n, _, err := syscall.Accept4(int(fd), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
				if err != nil {
					return
				}
				file := os.NewFile(uintptr(n), "connection")
				if conn, err := net.FileConn(file); err == nil {
					a.conns = append(a.conns, conn)
				}
				file.Close()
			}
		})
	}
	listener.Close()
	return a
}
