package installer

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"time"
)

const (
	plain  = "bcdfghjklmnpqrstvwxz2456789"
	strong = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"
)

// random is that many letters and digits which are not mistaken for each other.
func random(length int) string { return pick(plain, length) }

// password has the form of kubeadmin's: four groups of five.
func password() string {
	return fmt.Sprintf("%s-%s-%s-%s", pick(strong, 5), pick(strong, 5), pick(strong, 5), pick(strong, 5))
}

func pick(alphabet string, length int) string {
	text := make([]byte, length)
	for i := range text {
		index, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(err) // the system has no randomness
		}
		text[i] = alphabet[index.Int64()]
	}
	return string(text)
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// duration reads a time from the environment, such as 90s.
func duration(name string, otherwise time.Duration) (time.Duration, error) {
	text := os.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		return 0, fmt.Errorf("%s=%q is not a duration such as 90s", name, text)
	}
	return value, nil
}
