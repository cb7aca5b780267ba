class Gitrollout < Formula
  desc "Progressive delivery from a Git repository"
  homepage "https://gitrollout.dev/gitrollout"
  version "0.2.0"
  license "Apache-2.0"

  on_macos do
    on_intel do
      url "https://downloads.example.com/gitrollout/v0.2.0/gitrollout_v0.2.0_darwin_amd64.tar.gz"
      sha256 "the sum of gitrollout_v0.2.0_darwin_amd64.tar.gz"
    end
    on_arm do
      url "https://downloads.example.com/gitrollout/v0.2.0/gitrollout_v0.2.0_darwin_arm64.tar.gz"
      sha256 "the sum of gitrollout_v0.2.0_darwin_arm64.tar.gz"
    end
  end

  on_linux do
    on_intel do
      url "https://downloads.example.com/gitrollout/v0.2.0/gitrollout_v0.2.0_linux_amd64.tar.gz"
      sha256 "the sum of gitrollout_v0.2.0_linux_amd64.tar.gz"
    end
    on_arm do
      url "https://downloads.example.com/gitrollout/v0.2.0/gitrollout_v0.2.0_linux_arm64.tar.gz"
      sha256 "the sum of gitrollout_v0.2.0_linux_arm64.tar.gz"
    end
  end

  def install
    bin.install "gitrollout"
    generate_completions_from_executable bin/"gitrollout", "completion"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gitrollout version")
  end
end
