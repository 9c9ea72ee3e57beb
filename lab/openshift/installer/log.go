package installer

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Levels of the log, the most important first; --log-level says up to which one standard error tells.
var levels = []string{"fatal", "error", "warning", "info", "debug"}

// logger writes as the real installer does: to standard error up to a level, and all of it to a file.
type logger struct {
	stderr   io.Writer
	terminal bool
	level    int
	file     io.WriteCloser
	now      func() time.Time
}

func newLogger(level string) (*logger, error) {
	if level == "warn" {
		level = "warning"
	}
	index := slices.Index(levels, level)
	if index < 0 {
		return nil, fmt.Errorf("invalid log-level: not a valid logrus Level: %q", level)
	}
	terminal := false
	if info, err := os.Stderr.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0
	}
	return &logger{stderr: os.Stderr, terminal: terminal, level: index, now: time.Now}, nil
}

// open begins the log file of an assets directory, and makes the directory.
func (l *logger) open(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("failed to create base directory for logs: %w", err)
	}
	path := filepath.Join(directory, ".openshift_install.log")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("failed to open log file: %w", err)
	}
	l.file = file
	l.debug("OpenShift Installer %s", Version)
	l.debug("Built from commit %s", commit)
	return nil
}

func (l *logger) close() {
	if l.file != nil {
		_ = l.file.Close() // every line was written unbuffered
	}
}

func (l *logger) debug(format string, args ...any) { l.write("debug", format, args...) }
func (l *logger) info(format string, args ...any)  { l.write("info", format, args...) }
func (l *logger) warn(format string, args ...any)  { l.write("warning", format, args...) }
func (l *logger) error(format string, args ...any) { l.write("error", format, args...) }
func (l *logger) fatal(format string, args ...any) { l.write("fatal", format, args...) }

func (l *logger) write(level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if slices.Index(levels, level) <= l.level {
		if l.terminal {
			fmt.Fprintf(l.stderr, "%-7s %s\n", strings.ToUpper(level), text)
		} else {
			fmt.Fprintf(l.stderr, "level=%s msg=%s\n", level, text)
		}
	}
	if l.file != nil {
		fmt.Fprintf(l.file, "time=%q level=%s msg=%q\n", l.now().UTC().Format(time.RFC3339), level, text)
	}
}
