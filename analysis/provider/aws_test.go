package provider

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// wantSignature fails the test if a request is not signed for a scope.
func wantSignature(t *testing.T, r *http.Request, scope, signed string) {
	t.Helper()
	form := regexp.MustCompile("^AWS4-HMAC-SHA256 Credential=" + regexp.QuoteMeta(scope) + ", SignedHeaders=" + regexp.QuoteMeta(signed) + ", Signature=[0-9a-f]{64}$")
	if got := r.Header.Get("Authorization"); !form.MatchString(got) {
		t.Errorf("Authorization is %q, want the scope %s and the headers %s", got, scope, signed)
	}
}

// TestSigv4 has examples of AWS's Signature Version 4 test suite
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
func TestSigv4(t *testing.T) {
	for name, c := range map[string]struct{ method, url, kind, body, want string }{
		"get-vanilla":                      {"GET", "https://example.amazonaws.com/", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query-order-key-case": {"GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"post-vanilla":                     {"POST", "https://example.amazonaws.com/", "", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded":       {"POST", "https://example.amazonaws.com/", "application/x-www-form-urlencoded", "Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		g := signer{
			awsKeys: awsKeys{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
			region:  "us-east-1", service: "service", at: time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC),
		}
		g.sign(r, []byte(c.body))
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s: got %s, want the signature %s", name, got, c.want)
		}
	}
}

// TestAWSCredentials are found where AWS's SDKs look, and exchanged at STS.
func TestAWSCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	profiles := write("credentials", "[default]\naws_access_key_id = no\n[metrics]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = "+token+"\n[other]\naws_access_key_id=no\n")
	identity := write("token", token+"\n")
	for name, c := range map[string]struct {
		env   func(address string) map[string]string
		sigv4 map[string]any
		scope string
	}{
		"environment": {func(string) map[string]string {
			return map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": token}
		}, map[string]any{}, "AKIDENV/20260131/eu-west-1/aps/aws4_request"},
		"profile": {func(string) map[string]string {
			return map[string]string{"AWS_SHARED_CREDENTIALS_FILE": profiles}
		}, map[string]any{"profile": "metrics", "region": "eu-north-1"}, "AKIDPROFILE/20260131/eu-north-1/aps/aws4_request"},
		"service account": {func(address string) map[string]string {
			return map[string]string{"AWS_REGION": "eu-west-1", "AWS_WEB_IDENTITY_TOKEN_FILE": identity, "AWS_ROLE_ARN": "arn:aws:iam::1:role/pod", "AWS_ENDPOINT_URL_STS": address + "/sts/"}
		}, map[string]any{}, "AKIDWEB/20260131/eu-west-1/aps/aws4_request"},
		"pod identity": {func(address string) map[string]string {
			return map[string]string{"AWS_REGION": "eu-west-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": address + "/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": identity}
		}, map[string]any{}, "AKIDAGENT/20260131/eu-west-1/aps/aws4_request"},
		"another role": {func(address string) map[string]string {
			return map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": token, "AWS_ENDPOINT_URL_STS": address + "/sts/"}
		}, map[string]any{"roleArn": "arn:aws:iam::1:role/metrics"}, "AKIDROLE/20260131/eu-west-1/aps/aws4_request"},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := prometheusContract
			c2.env = c.env
			c2.config = func(address string) map[string]any {
				return map[string]any{"address": address + "/workspaces/ws-1", "query": "up", "authentication": map[string]any{"sigv4": c.sigv4}}
			}
			c2.serve = func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
				switch r.URL.Path {
				case "/sts/":
					return serveSTS(f, w, r, body)
				case "/agent":
					f.wantEqual("Authorization", r.Header.Get("Authorization"), token)
					_, _ = io.WriteString(w, `{"AccessKeyId":"AKIDAGENT","SecretAccessKey":"`+token+`","Token":"s3cr3t-session"}`)
					return true
				}
				f.want(r, http.MethodPost, "/workspaces/ws-1/api/v1/query")
				signed := "content-type;host;x-amz-date"
				if !strings.HasPrefix(name, "env") && !strings.HasPrefix(name, "prof") {
					signed += ";x-amz-security-token"
				}
				wantSignature(f.t, r, c.scope, signed)
				f.send(w, "application/json")
				return true
			}
			b := newBench(t, c2)
			b.reply = prometheusAnswers[0].reply
			if _, err := b.measure(t.Context()); err != nil {
				t.Errorf("got the error %q", err)
			}
			b.mode = "500"
			got, err := b.measure(t.Context())
			checkQuiet(t, err, got)
		})
	}
}

// serveSTS follows https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html and …WithWebIdentity.html.
func serveSTS(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
	f.want(r, http.MethodPost, "/sts/")
	if strings.Contains(body, "Action=AssumeRoleWithWebIdentity") {
		if !strings.Contains(body, "WebIdentityToken=s3cr3t%2Fwith%2Bodd%3Dchars") || r.Header.Get("Authorization") != "" {
			return false
		}
		_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<SessionToken>s3cr3t-session</SessionToken><SecretAccessKey>`+token+`</SecretAccessKey><AccessKeyId>AKIDWEB</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		return true
	}
	wantSignature(f.t, r, "AKIDENV/20260131/eu-west-1/sts/aws4_request", "content-type;host;x-amz-date")
	_, _ = io.WriteString(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>`+
		`<SessionToken>s3cr3t-session</SessionToken><SecretAccessKey>`+token+`</SecretAccessKey><AccessKeyId>AKIDROLE</AccessKeyId></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
	return true
}
