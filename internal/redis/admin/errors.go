package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/rueidis"
)

// Kinds of failure.
var (
	// ErrRefused: a fresh dial was refused: nothing listens at the address.
	ErrRefused = errors.New("connection refused")
	// ErrUnreachable: the process did not answer in time, or the connection broke.
	ErrUnreachable = errors.New("does not answer")
	// ErrHangs is an ErrUnreachable: a fresh connection was accepted, which the
	// kernel does, and the process said nothing. It is stopped, or busy for long.
	ErrHangs = fmt.Errorf("accepts connections and %w", ErrUnreachable)
	// ErrAuth: the process rejects our credentials.
	ErrAuth = errors.New("rejects the operator's credentials")
	// ErrCertificate: the process does not prove who it is.
	ErrCertificate = errors.New("shows a certificate that is not trusted")
	// ErrNotLeading: another process of the operator may act now.
	ErrNotLeading = errors.New("this process does not lead")
	// ErrReplied: the process answered with an error.
	ErrReplied = errors.New("replied with an error")
)

// IsMemberError says that the member, and not the API server or the operator,
// is why something failed.
func IsMemberError(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrAuth) || errors.Is(err, ErrReplied) || errors.Is(err, ErrCertificate)
}

// IsRefusal says that the process answered that it will not do it.
func IsRefusal(err error) bool { return errors.Is(err, ErrReplied) }

// classify wraps an error with its kind. Redis's replies hold no secrets of
// ours: they quote at most a directive's name and value.
func classify(address string, err error) error {
	var reply *rueidis.RedisError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case IsMemberError(err):
		return err
	case errors.As(err, &reply):
		text := reply.Error()
		if strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH") || strings.HasPrefix(text, "NOPERM") {
			return fmt.Errorf("redis at %s %w: %s", address, ErrAuth, text)
		}
		return fmt.Errorf("redis at %s %w: %s", address, ErrReplied, text)
	case errors.As(err, &certificate):
		return fmt.Errorf("redis at %s %w: %w", address, ErrCertificate, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("redis at %s: %w", address, ErrRefused)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("redis at %s %w: %w", address, ErrUnreachable, err)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("redis at %s %w: %w", address, ErrUnreachable, err)
	}
	return fmt.Errorf("redis at %s %w: %w", address, ErrUnreachable, err)
}
