// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	usage = `usage: inference_host [OPTIONS] MODELS FILE     Serves MODELS/FILE on 127.0.0.1
  -p PORT          Port; 0 = any free port, which is printed (default 0)
  -r REPLICAS      Number of replicas; 0 = one for each CPU (default 0)
  -q REQUESTS      Maximum number of queued requests (default 256)
  -b TEXTS         Maximum number of texts in a batch, 1 to 64 (default 8)
  -d MICROSECONDS  How long a text waits for others if a replica is idle
                   (default 0)
  -t MILLISECONDS  How long requests may take to complete after SIGTERM
                   (default 10000)
`
	mostItems = 64 // maximum batch size
)

type options struct {
	models, file             string // the folder, and the name of the first model in it
	port, replicas, requests int
	texts                    int // per batch
	delay, drain             time.Duration
}

// parseOptions prints a message and exits if the command line is invalid.
func parseOptions() options {
	o := options{requests: 256, texts: 8, drain: 10 * time.Second}
	flags := flag.NewFlagSet("inference_host", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	number := func(name string, least, most int, take func(n int)) {
		flags.Func(name, "", func(text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < least || n > most {
				return errors.New("not a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
			}
			take(n)
			return nil
		})
	}
	number("p", 0, 65535, func(n int) { o.port = n })
	number("r", 0, 1024, func(n int) { o.replicas = n })
	number("q", 1, 1000000, func(n int) { o.requests = n })
	number("b", 1, mostItems, func(n int) { o.texts = n })
	number("d", 0, 3600000000, func(n int) { o.delay = time.Duration(n) * time.Microsecond })
	number("t", 0, 3600000, func(n int) { o.drain = time.Duration(n) * time.Millisecond })
	_ = flags.Parse(os.Args[1:]) // exits on error
	if flags.NArg() != 2 {
		flags.Usage()
		os.Exit(2)
	}
	o.models, o.file = flags.Arg(0), flags.Arg(1)
	return o
}
