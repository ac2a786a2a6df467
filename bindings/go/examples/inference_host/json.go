// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"

	"libdist.example/dist"
)

type embedding struct {
	Version   int64     `json:"version"`
	Embedding []float32 `json:"embedding"`
}

type published struct {
	Version int64 `json:"version"`
}

type health struct {
	Draining bool  `json:"draining"`
	Version  int64 `json:"version"`
	Waiting  int   `json:"waiting"`
	Active   int   `json:"active"`
	Accepted int64 `json:"accepted"`
	Answered int64 `json:"answered"`
	Gone     int64 `json:"gone"`
}

func (h *health) code() int {
	if h.Draining {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

type failure struct {
	Error string `json:"error"`
}

// parseIDs parses the ids of a text: {"ids": [101, 7592, 102]}.
func parseIDs(body []byte) ([]int32, error) {
	var asked struct {
		IDs []int32 `json:"ids"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, dist.Errorf(dist.ErrInvalidArgument, "the body is not {\"ids\": [...]}, of whole numbers: %v", err)
	}
	if len(asked.IDs) == 0 || len(asked.IDs) > mostTokens {
		return nil, dist.Errorf(dist.ErrInvalidArgument, "a text has 1 to %d ids, not %d", mostTokens, len(asked.IDs))
	}
	for _, id := range asked.IDs {
		if id < 0 {
			return nil, dist.Errorf(dist.ErrInvalidArgument, "an id is not a whole number from 0: %d", id)
		}
	}
	return asked.IDs, nil
}

// parsePath parses the path of a file in the folder: {"file": "new.safetensors"}.
func parsePath(body []byte, folder string) (string, error) {
	const mostOfAName = 255
	var asked struct {
		File string `json:"file"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return "", dist.Errorf(dist.ErrInvalidArgument, "the body is not {\"file\": \"...\"}: %v", err)
	}
	file := asked.File
	if file == "" || file[0] == '.' || len(file) > mostOfAName || strings.ContainsAny(file, "/\x00") {
		return "", dist.Errorf(dist.ErrInvalidArgument, "the file is to be one of the models' folder, by its name alone")
	}
	return filepath.Join(folder, file), nil
}
