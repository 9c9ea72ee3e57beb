// Package hardware is what takes the place of programs that would talk to the kernel, to systemd or to a disk on a
// simulated machine: each asks the machine's hardware what it would do (lab/machines/simulated/hardware.py).
package hardware

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

const leftBehind = 5 * time.Minute

// Socket is where a simulated machine's hardware listens, as its programs see it.
const Socket = "/run/simulated/hardware"

type call struct {
	Name      string   `json:"name"`
	Directory string   `json:"directory"` // where the program was started
	Arguments []string `json:"arguments"`
}

type answer struct {
	Status int    `json:"status"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Then   string `json:"then"` // a command line that does the rest with the host's programs; empty if there is no rest
}

// Ask is a program of that name; it returns the exit code.
func Ask(name string, arguments []string) int {
	said, err := ask(name, arguments)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: the machine's hardware does not answer: %v\n", name, err)
		return 70
	}
	fmt.Print(said.Stdout)
	fmt.Fprint(os.Stderr, said.Stderr)
	if said.Then == "" {
		return said.Status
	}
	environment := append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin") // of two the last one counts
	err = syscall.Exec("/bin/sh", []string{"sh", "-c", "exec " + said.Then}, environment)
	fmt.Fprintf(os.Stderr, "%s: /bin/sh: %v\n", name, err)
	return 70
}

func ask(name string, arguments []string) (answer, error) {
	directory, err := os.Getwd()
	if err != nil { // a program also runs where its directory was deleted
		directory = os.Getenv("PWD")
	}
	connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: Socket, Net: "unix"})
	if err != nil {
		return answer{}, err
	}
	defer connection.Close()
	if err := json.NewEncoder(connection).Encode(call{Name: name, Directory: directory, Arguments: arguments}); err != nil {
		return answer{}, err
	}
	if err := connection.CloseWrite(); err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(connection)
	if err != nil {
		return answer{}, err
	}
	if len(text) == 0 {
		// The machine goes down. A program there does not see the end of what it asked for: whoever called it would do
		// something else instead. It is killed with all others; should it be left behind, it ends some time.
		time.Sleep(leftBehind)
		return answer{}, io.ErrUnexpectedEOF
	}
	var said answer
	return said, json.Unmarshal(text, &said)
}
