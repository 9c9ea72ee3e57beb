package installer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// streamDefault is where the lab serves its CoreOS stream metadata; the real installer carries its own inside.
const streamDefault = "http://boot.facility.test/streams/lab.json"

func printStream(ctx context.Context) error {
	source := os.Getenv("LAB_OPENSHIFT_STREAM")
	if source == "" {
		source = streamDefault
	}
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		data, err := os.ReadFile(source)
		if err == nil {
			_, err = os.Stdout.Write(data)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("stream metadata: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("stream metadata: %s: %s", source, response.Status)
	}
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
