// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"log/slog"
	"time"
)

// LogTo returns a function for the Log of [Options] that passes libdist's log lines to a logger. The records have no
// source position, because they come from C++ code. The logger's handler is called on any thread and must not
// call libdist.
func LogTo(logger *slog.Logger) func(level LogLevel, message string) {
	return func(level LogLevel, message string) {
		ctx, severity := context.Background(), slog.LevelInfo
		switch level {
		case LogError:
			severity = slog.LevelError
		case LogWarning:
			severity = slog.LevelWarn
		}
		if handler := logger.Handler(); handler.Enabled(ctx, severity) {
			_ = handler.Handle(ctx, slog.NewRecord(time.Now(), severity, message, 0))
		}
	}
}
