package service

import (
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/publish/notify"
)

// TestAddressOfGoogleChat reports a secret without an address, but not its text.
func TestAddressOfGoogleChat(t *testing.T) {
	var failure *Failure
	err := sendGoogleChat(t.Context(), &session{values: map[string]string{"url": "https://chat.example.com/%zz?key=s3cret"}}, notify.Message{})
	if !errors.As(err, &failure) || failure.Error() != "the url is not an address" {
		t.Errorf("the error is %v", err)
	}
}
